// ---- one flame graph: boxes that can be pointed at, clicked and walked by keys.

// how: paint(node) gives a colour, kind(node) a class with a pattern (optional), label(node) what stands in a box, words(node)
// what a pointer or a screen reader is told.
function flameGraph(place, status, tip) {
  const state = { root: null, focus: null, at: null, hits: new Set(), how: null, boxes: new Map(), nodes: new WeakMap() };
  const rowHeight = 20, leastWidth = 0.003; // leastWidth: share of the graph's width, about 3 pixels; narrower boxes look blank

  function line(n) { const list = []; for (let p = n; p; p = p.parent) list.unshift(p); return list; }

  function box(n, depth, left, width, faded) {
    const e = document.createElement('div');
    e.className = 'box' + (faded ? ' above' : '') + (state.hits.has(n) ? ' hit' : '') + (n === state.at ? ' at' : '') + (state.how.kind ? ' ' + state.how.kind(n) : '');
    e.id = 'box-' + state.boxes.size;
    e.setAttribute('role', 'treeitem');
    e.setAttribute('aria-level', depth + 1);
    e.setAttribute('aria-selected', n === state.at);
    e.setAttribute('aria-label', state.how.words(n).join(', '));
    Object.assign(e.style, { left: left * 100 + '%', width: width * 100 + '%', top: depth * rowHeight + 'px', backgroundColor: state.how.paint(n) });
    if (width * place.clientWidth > 24) e.textContent = state.how.label(n);
    state.boxes.set(n, e);
    state.nodes.set(e, n);
    return e;
  }

  function draw() {
    state.boxes.clear();
    const boxes = [];
    if (!state.root) { place.replaceChildren(); return; }
    const above = line(state.focus).slice(0, -1);
    above.forEach((n, depth) => boxes.push(box(n, depth, 0, 1, true)));
    let deepest = above.length;
    const walk = (n, depth, left, width) => {
      if (width < leastWidth) return;
      deepest = Math.max(deepest, depth);
      boxes.push(box(n, depth, left, width, false));
      let x = left;
      n.children.forEach(c => { const w = n.value > 0 ? width * c.value / n.value : 0; walk(c, depth + 1, x, w); x += w; });
    };
    walk(state.focus, above.length, 0, 1);
    place.style.height = (deepest + 1) * rowHeight + 2 + 'px';
    place.replaceChildren(...boxes);
    mark();
  }

  function mark() {
    place.querySelectorAll('.at').forEach(e => { e.classList.remove('at'); e.setAttribute('aria-selected', 'false'); });
    const e = state.boxes.get(state.at);
    if (!e) { place.removeAttribute('aria-activedescendant'); return; }
    e.classList.add('at');
    e.setAttribute('aria-selected', 'true');
    place.setAttribute('aria-activedescendant', e.id);
  }

  function tell(n) { status.textContent = n ? state.how.words(n).join(' · ') : ''; }
  function go(n) {
    if (!n || !state.boxes.has(n)) return;
    state.at = n;
    mark();
    tell(n);
    state.boxes.get(n).scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }
  function zoom(n) { state.focus = n; state.at = n; draw(); tell(n); }
  function reset() { if (state.root) zoom(state.root); }

  const nodeAt = target => state.nodes.get(target) || null;
  place.addEventListener('click', event => { const n = nodeAt(event.target); if (n) zoom(n); });
  place.addEventListener('pointermove', event => {
    const n = nodeAt(event.target);
    tip.hidden = !n;
    if (!n) return;
    tip.replaceChildren(...state.how.words(n).map((text, i) => Object.assign(document.createElement(i ? 'span' : 'b'), { textContent: text })));
    const frame = tip.offsetParent.getBoundingClientRect();
    tip.style.left = Math.max(0, Math.min(event.clientX - frame.left + 14, frame.width - tip.offsetWidth - 4)) + 'px';
    tip.style.top = event.clientY - frame.top + 18 + 'px';
  });
  place.addEventListener('pointerleave', () => { tip.hidden = true; });
  place.addEventListener('focus', () => go(state.at || state.focus));
  place.addEventListener('keydown', event => {
    const n = state.at || state.focus;
    if (!n) return;
    const beside = step => {
      const siblings = n.parent ? n.parent.children.filter(c => state.boxes.has(c)) : [n];
      return siblings[siblings.indexOf(n) + step];
    };
    const widestChild = () => n.children.reduce((best, c) => (!best || c.value > best.value ? c : best), null);
    const keys = {
      ArrowDown: () => go(widestChild()), ArrowUp: () => go(n.parent), ArrowLeft: () => go(beside(-1)), ArrowRight: () => go(beside(1)),
      Enter: () => zoom(n), ' ': () => zoom(n), Escape: reset, Home: () => go(state.root),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });

  return {
    show(root, how) { Object.assign(state, { root, focus: root, at: root, how, hits: new Set() }); tip.hidden = true; draw(); tell(root); },
    highlight(nodes) { state.hits = nodes; place.classList.toggle('searching', nodes.size > 0); draw(); },
    reset, redraw: draw,
  };
}
