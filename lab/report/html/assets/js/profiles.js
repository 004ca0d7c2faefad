// ---- where the CPU time went: which tables are shown, and the flame graph.
const profileViews = [...document.querySelectorAll('.profile')];
const shownSide = document.getElementById('flame-side'), against = document.getElementById('flame-against');
function showProfile() {
  if (!shownSide) return;
  const chosen = shownSide.options[shownSide.selectedIndex];
  profileViews.forEach(v => { v.hidden = v.dataset.key !== chosen.value; });
}

function profileCharts(flames) {
  const place = document.getElementById('flame'), status = document.getElementById('flame-at');
  const graph = flameGraph(place, status, document.getElementById('flame-tip'));
  const search = document.getElementById('flame-search'), sum = document.getElementById('flame-sum');
  const legend = document.getElementById('flame-legend'), changes = document.getElementById('flame-changes');
  // The keys of the options and tables are places in the list of sides.
  const keyOf = s => String(flames.sides.indexOf(s));
  const sideOf = key => (key === '' ? undefined : flames.sides[key]);
  let root = null, unitText = '', totals = null;

  const make = (name, text, kind) => { const e = document.createElement(name); if (text !== undefined) e.textContent = text; if (kind) e.className = kind; return e; };
  const percent = v => (v * 100).toFixed(v < 0.0995 ? 2 : 1) + ' %';
  const signed = v => (v > 0 ? '+' : v < 0 ? '−' : '') + figure(Math.abs(v));
  const chip = i => make('i', undefined, 'chip ' + hueOf(flames.categories[i], i));
  const fullName = n => n.name.replace(/_\[k\]$/, ' (kernel)');
  const shortName = n => n.name.replace(/_\[k\]$/, '');

  function alone(side) {
    root = treeOf(flames, side);
    const whole = root ? root.value : 0;
    unitText = 'cores';
    totals = null;
    const part = n => (whole ? n.value / whole : 0);
    place.setAttribute('aria-label', `Flame graph of ${side.scenario}, ${side.side}. Arrow keys walk it, Enter zooms, Escape shows all.`);
    graph.show(root, {
      paint: n => `var(--${n.parent ? hueOf(flames.categories[n.category], n.category).split(' ')[0] : 'raised'})`,
      kind: n => (n.parent ? hueOf(flames.categories[n.category], n.category).split(' ')[1] : ''),
      label: shortName,
      words: n => [fullName(n), percent(part(n)) + ' of the side', figure(n.value) + ' cores'].concat(side.rate > 0 ? [figure(n.value * 1e9 / side.rate) + ' ns/byte'] : [], [n.samples.toLocaleString('en-US') + ' samples'], n.parent ? ['mostly ' + flames.categories[n.category]] : []),
    });
    const used = new Set();
    (function walk(n) { if (!n) return; if (n.parent) used.add(n.category); n.children.forEach(walk); })(root);
    legend.replaceChildren(...[...used].sort((a, b) => a - b).map(i => { const e = make('span', undefined, 'entry'); e.append(chip(i), flames.categories[i]); return e; }));
    changes.hidden = true;
    showProfile();
  }

  function compared(side, base) {
    const perByte = side.rate > 0 && base.rate > 0;
    const scaleA = perByte ? 1e9 / base.rate : 1, scaleB = perByte ? 1e9 / side.rate : 1;
    unitText = perByte ? 'ns/byte' : 'cores';
    const a = treeOf(flames, base), b = treeOf(flames, side);
    root = a || b ? merged(a, b, scaleA, scaleB) : null;
    totals = root;
    const change = n => n.b - n.a;
    // The sign stands where a box changed by a hundredth of all or more.
    const sign = n => (root && Math.abs(change(n)) >= 0.01 * Math.max(root.a, root.b) ? (change(n) > 0 ? '▲ ' : '▼ ') : '');
    place.setAttribute('aria-label', `Differential flame graph: ${side.scenario} against ${base.scenario}, ${side.side}, in ${unitText}. Arrow keys walk it, Enter zooms, Escape shows all.`);
    graph.show(root, {
      paint: n => { const d = n.value > 0 ? change(n) / n.value : 0; return `color-mix(in srgb, var(--${d > 0 ? 'more' : 'less'}) ${Math.round(Math.abs(d) * 85)}%, var(--raised))`; },
      label: n => sign(n) + shortName(n),
      words: n => [fullName(n), `${signed(change(n))} ${unitText}`, `${side.scenario} ${figure(n.b)}`, `${base.scenario} ${figure(n.a)}`, change(n) > 0 ? 'costs more' : change(n) < 0 ? 'costs less' : 'no change'],
    });
    const more = make('span', undefined, 'entry'), less = make('span', undefined, 'entry');
    more.append(make('i', undefined, 'chip more'), `▲ costs more in ${side.scenario}`);
    less.append(make('i', undefined, 'chip less'), `▼ costs less than in ${base.scenario}`);
    legend.replaceChildren(more, less, make('span', perByte ? 'A box is as wide as both together, in CPU ns per byte.' : 'A box is as wide as both together, in cores (throughput is not known for both).', 'entry'));
    profileViews.forEach(v => { v.hidden = true; });
    table(side, base, scaleA, scaleB);
  }

  // The categories of both, and the change.
  function table(side, base, scaleA, scaleB) {
    const of = (s, i) => s.table.filter(r => r.category === i).reduce((t, r) => t + r.cores, 0);
    const rows = flames.categories.map((name, i) => ({ name, i, a: of(base, i) * scaleA, b: of(side, i) * scaleB }))
      .filter(r => (r.a || r.b) && !isApart(r.name)).sort((x, y) => Math.abs(y.b - y.a) - Math.abs(x.b - x.a));
    const whole = { name: 'sum', a: rows.reduce((t, r) => t + r.a, 0), b: rows.reduce((t, r) => t + r.b, 0) };
    const tr = r => {
      const row = make('tr'), head = make('th');
      head.scope = 'row';
      if (r.i !== undefined) head.append(chip(r.i));
      head.append(r.name);
      const d = r.b - r.a;
      row.append(head, make('td', figure(r.a), 'n'), make('td', figure(r.b), 'n'), make('td', (d > 0 ? '▲ ' : d < 0 ? '▼ ' : '') + signed(d), 'n ' + (d > 0 ? 'worse' : d < 0 ? 'better' : '')));
      if (r.i === undefined) row.className = 'sum';
      return row;
    };
    const head = make('tr');
    for (const [text, kind] of [['category', ''], [base.scenario, 'n'], [side.scenario, 'n'], ['change', 'n']]) { const th = make('th', text, kind); th.scope = 'col'; head.append(th); }
    const thead = make('thead'), body = make('tbody'), t = make('table', undefined, 'categories');
    thead.append(head);
    body.append(...rows.map(tr), tr(whole));
    t.append(thead, body);
    const scroll = changes.querySelector('.scroll');
    scroll.replaceChildren(t);
    changes.querySelector('h3').textContent = `${side.side}: ${side.scenario} against ${base.scenario}, ${unitText === 'ns/byte' ? 'CPU ns per byte' : 'cores'}`;
    changes.hidden = false;
  }

  function seek() {
    const result = root ? found(root, search.value) : { nodes: new Set(), places: 0 };
    graph.highlight(result.nodes);
    if (!search.value.trim() || !root) sum.textContent = '';
    else if (!result.places) sum.textContent = 'nothing found';
    else if (totals) sum.textContent = `${figure(result.a)} → ${figure(result.b)} ${unitText} (${signed(result.b - result.a)})`;
    else sum.textContent = `${percent(result.value / root.value)} · ${figure(result.value)} cores in ${result.places} place${result.places > 1 ? 's' : ''}`;
  }

  function offer() {
    const side = sideOf(shownSide.value), before = against.value;
    const others = flames.sides.filter(s => side && s !== side && s.side === side.side);
    against.replaceChildren(new Option('nothing: by itself', ''), ...others.map(s => new Option(s.scenario, keyOf(s), false, keyOf(s) === before)));
    against.disabled = !others.length;
  }
  function show() {
    const side = sideOf(shownSide.value), base = sideOf(against.value);
    document.getElementById('flame-frame').hidden = !side;
    if (!side) { changes.hidden = true; showProfile(); return; } // a profile that could not be read
    if (base) compared(side, base); else alone(side);
    seek();
  }
  shownSide.addEventListener('change', () => { offer(); show(); });
  against.addEventListener('change', show);
  search.addEventListener('input', seek);
  document.getElementById('flame-reset').addEventListener('click', () => { search.value = ''; graph.reset(); seek(); });
  window.addEventListener('resize', graph.redraw);
  offer();
  show();
}

const isApart = name => ['idle', 'fabric (the lab\'s wire)'].includes(name);
const hueOf = (name, i) => (isApart(name) ? 'apart' : `k${i % 12} p${Math.floor(i / 12)}`);
if (shownSide) {
  showProfile();
  if (document.getElementById('flames').textContent.trim()) {
    unpacked('flames').then(r => r.json()).then(profileCharts).then(() => { document.getElementById('flame').dataset.ready = 'yes'; });
  }
}
