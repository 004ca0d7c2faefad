// ---- the trees of flame graphs: unpacked, merged, searched. Nothing here draws.

// Gzipped text in base64 within a script element of this id.
async function unpacked(id) {
  const packed = Uint8Array.from(atob(document.getElementById(id).textContent.trim()), c => c.charCodeAt(0));
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip')));
}

// The tree of a side: columns, depth first, become nodes.
function treeOf(flames, side) {
  const path = [];
  side.name.forEach((name, i) => {
    const node = { name: flames.names[name], category: side.category[i], value: side.value[i] / flames.unit, samples: side.samples[i], children: [], parent: null };
    const depth = side.depth[i];
    path.length = depth;
    if (depth) { node.parent = path[depth - 1]; node.parent.children.push(node); }
    path[depth] = node;
  });
  return path[0] || null;
}

// Both trees in one: a is the baseline's value and b the other's, each times its
// scale. A box is as wide as both together, so what only one has is seen as well.
function merged(a, b, scaleA, scaleB, parent) {
  const own = (n, scale) => (n ? n.value * scale : 0);
  const node = { name: (b || a).name, category: (b || a).category, a: own(a, scaleA), b: own(b, scaleB), parent: parent || null, children: [] };
  node.value = node.a + node.b;
  node.samples = (a ? a.samples : 0) + (b ? b.samples : 0);
  const names = new Map();
  for (const [tree, side] of [[a, 0], [b, 1]]) {
    if (tree) tree.children.forEach(c => { const pair = names.get(c.name) || [null, null]; pair[side] = c; names.set(c.name, pair); });
  }
  node.children = [...names.keys()].sort((x, y) => (x < y ? -1 : x > y ? 1 : 0)).map(n => merged(...names.get(n), scaleA, scaleB, node));
  return node;
}

// The nodes whose names hold the text, and the sum of the topmost of them: what
// a match calls is in it already.
function found(root, text) {
  const wanted = text.trim().toLowerCase(), result = { nodes: new Set(), value: 0, a: 0, b: 0, places: 0 };
  if (!wanted) return result;
  const walk = (n, inside) => {
    const hit = n.parent !== null && n.name.toLowerCase().includes(wanted);
    if (hit) {
      result.nodes.add(n);
      if (!inside) { result.value += n.value; result.a += n.a || 0; result.b += n.b || 0; result.places++; }
    }
    n.children.forEach(c => walk(c, inside || hit));
  };
  walk(root, false);
  return result;
}
