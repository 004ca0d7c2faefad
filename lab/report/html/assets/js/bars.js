// ---- bars with whiskers and every trial as a point.
function bars(panel, width) {
  const labels = panel.rows.map(r => r.label + (r.absent ? '\n' + r.absent : ''));
  const beside = panel.beside && !narrow() && !root.dataset.paper;
  const room = beside ? 4 : Math.min(widest(labels.flatMap(l => l.split('\n')), 12) + 14, width * 0.4);
  const sides = panel.sides.length;
  const bar = [], dots = [];
  panel.rows.forEach((r, i) => r.bars.forEach((b, side) => {
    if (!b) return;
    bar.push({ value: [b.median / panel.by, i, side, b.low / panel.by, b.high / panel.by], row: r, bar: b, side });
    (b.points || []).forEach((p, k) => dots.push({ value: [p[1] / panel.by, i, side, jitter(k)], row: r, block: p[0], side }));
  }));
  const single = row => row.bars.filter(Boolean).length < 2;
  // One bar of two stands in the middle of its row.
  const lane = (api, row, side) => {
    const step = api.size([0, 1])[1], band = step * (step < 36 ? 0.84 : 0.62);
    const n = single(row) ? 1 : sides;
    const height = Math.min(band / n, 20);
    const centre = n === 1 ? 0 : (side - (n - 1) / 2) * (height + 2);
    return { height, centre };
  };
  function drawBar(params, api) {
    const item = bar[params.dataIndex], { height, centre } = lane(api, item.row, item.side);
    const [x, y] = api.coord([api.value(0), api.value(1)]);
    const zero = api.coord([0, api.value(1)])[0], at = y + centre;
    const low = api.coord([api.value(3), api.value(1)])[0], high = api.coord([api.value(4), api.value(1)])[0];
    const hue = colour(item.row), pale = item.side === 1 || item.row.light;
    const right = Math.max(x, high, ...(item.bar.points || []).map(p => api.coord([p[1] / panel.by, 0])[0] + 3));
    const line = { stroke: theme.ink, lineWidth: 1.3 };
    return { type: 'group', children: [
      { type: 'rect', shape: { x: zero, y: at - height / 2, width: Math.max(x - zero, 1), height, r: [0, 3, 3, 0] }, style: { fill: hue, opacity: pale ? 0.28 : 1 } },
      { type: 'rect', shape: { x: zero, y: at - height / 2, width: Math.max(x - zero, 1), height, r: [0, 3, 3, 0] }, style: { fill: 'none', stroke: hue, lineWidth: pale ? 1.4 : 0 } },
      { type: 'line', shape: { x1: low, y1: at, x2: high, y2: at }, style: line },
      { type: 'line', shape: { x1: low, y1: at - 4, x2: low, y2: at + 4 }, style: line },
      { type: 'line', shape: { x1: high, y1: at - 4, x2: high, y2: at + 4 }, style: line },
      { type: 'text', style: { x: right + 6, y: at, text: item.bar.text, fill: theme.ink, font: '600 12px ' + font, verticalAlign: 'middle' } },
    ] };
  }
  function drawDot(params, api) {
    const item = dots[params.dataIndex], { height, centre } = lane(api, item.row, item.side);
    const [x, y] = api.coord([api.value(0), api.value(1)]);
    return { type: 'circle', shape: { cx: x, cy: y + centre + api.value(3) * height * 0.8, r: 2.3 }, style: { fill: theme.ground, stroke: colour(item.row), lineWidth: 1.2, opacity: 0.95 } };
  }
  const who = item => escape(item.row.id) + (sides > 1 ? (single(item.row) ? ', the node' : ', ' + panel.sides[item.side]) : '');
  return {
    rows: panel.rows.length, step: Math.max(26, Math.min(40, 200 / panel.rows.length)),
    option: Object.assign(base(), {
      grid: { left: room, right: Math.max(48, widest(bar.map(b => b.bar.text), 12) + 14), top: 6, bottom: 26 },
      xAxis: valueAxis({ min: 0, max: panel.max || undefined }),
      yAxis: rowAxis(labels, !beside, room - 8),
      series: [
        { type: 'custom', name: 'median', renderItem: drawBar, encode: { x: 0, y: 1 }, data: bar, clip: false,
          tooltip: { formatter: p => { const d = p.data; return `${who(d)}<br><b>${d.bar.text}${unit(panel.unit)}</b> [${figure(d.bar.low / panel.by)}, ${figure(d.bar.high / panel.by)}]`; } } },
        { type: 'custom', name: 'trials', renderItem: drawDot, encode: { x: 0, y: 1 }, data: dots, z: 3,
          tooltip: { formatter: p => `${who(p.data)}<br>block ${p.data.block}: <b>${figure(p.value[0])}${unit(panel.unit)}</b>` } },
      ],
    }),
  };
}

