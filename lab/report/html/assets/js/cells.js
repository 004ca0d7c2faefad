// ---- cells: throughput as bars, the CPU of both sides as marks on an axis of its own.
function cells(panel, width) {
  const rows = panel.rows, labels = rows.map(r => r.label);
  const room = Math.min(widest(labels, 12) + 14, width * 0.4);
  const bars = rows.map((r, i) => ({ value: [r.bar.median / panel.by, i, r.bar.low / panel.by, r.bar.high / panel.by], row: r, bar: r.bar, unit: panel.unit, by: panel.by, what: '' }));
  const marks = rows.flatMap((r, i) => r.cpu.map((b, side) => b && ({ value: [b.median, i, b.low, b.high, side], row: r, bar: b, unit: '%', by: 1, what: side ? ', CPU of the receiver' : ', CPU of the sender' }))).filter(Boolean);
  const whisker = (low, high, y) => [[low, y, high, y], [low, y - 3, low, y + 3], [high, y - 3, high, y + 3]].map(
    ([x1, y1, x2, y2]) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: theme.ink, lineWidth: 1.2 } }));
  const at = (api, k) => api.coord([api.value(k), api.value(1)])[0];
  function drawBar(params, api) {
    const hue = colour(bars[params.dataIndex].row), [x, y] = api.coord([api.value(0), api.value(1)]);
    const zero = api.coord([0, api.value(1)])[0], shape = { x: zero, y: y - 3, width: Math.max(x - zero, 1), height: 12, r: [0, 3, 3, 0] };
    return { type: 'group', children: [
      { type: 'rect', shape, style: { fill: hue, opacity: 0.85 } },
      ...whisker(at(api, 2), at(api, 3), y + 3),
      { type: 'text', style: { x: Math.max(x, at(api, 3)) + 6, y: y + 3, text: bars[params.dataIndex].bar.text, fill: theme.ink, font: '600 12px ' + font, verticalAlign: 'middle' } },
    ] };
  }
  function drawMark(params, api) {
    const [x, row] = api.coord([api.value(0), api.value(1)]), y = row - 10, receiver = api.value(4) === 1;
    return { type: 'group', children: [
      ...whisker(at(api, 2), at(api, 3), y),
      { type: 'circle', shape: { cx: x, cy: y, r: 4 }, style: { fill: receiver ? theme.ground : theme.ink, stroke: theme.ink, lineWidth: 1.5 } },
    ] };
  }
  const tip = { formatter: p => { const d = p.data; return `${escape(d.row.id)}${d.what}<br><b>${d.bar.text}${unit(d.unit)}</b> [${figure(d.bar.low / d.by)}, ${figure(d.bar.high / d.by)}]`; } };
  return {
    rows: rows.length, step: 38,
    option: Object.assign(base(), {
      grid: { left: room, right: Math.max(20, widest(bars.map(b => b.bar.text), 12) + 14), top: 26, bottom: 26 },
      xAxis: [valueAxis({ min: 0, max: panel.max }),
        valueAxis({ min: 0, max: 100, position: 'top', splitLine: { show: false }, axisLabel: { color: theme.soft, hideOverlap: true, formatter: '{value} %' } })],
      yAxis: rowAxis(labels, true, room - 8),
      series: [
        { type: 'custom', name: 'throughput', renderItem: drawBar, encode: { x: 0, y: 1 }, data: bars, clip: false, tooltip: tip },
        { type: 'custom', name: 'CPU', renderItem: drawMark, xAxisIndex: 1, encode: { x: 0, y: 1 }, data: marks, clip: false, z: 3, tooltip: tip },
      ],
    }),
  };
}
