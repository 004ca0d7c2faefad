// ---- latency percentiles: one line a scenario, one shape a percentile.
const shapes = {
  'p50': (x, y) => ({ type: 'circle', shape: { cx: x, cy: y, r: 5.5 } }),
  'p90': (x, y) => ({ type: 'polygon', shape: { points: [[x - 5.5, y], [x, y - 5.5], [x + 5.5, y], [x, y + 5.5]] } }),
  'p99': (x, y) => ({ type: 'polygon', shape: { points: [[x - 5.5, y + 4.5], [x, y - 6], [x + 5.5, y + 4.5]] } }),
  'p99.9': (x, y) => ({ type: 'rect', shape: { x: x - 4.5, y: y - 4.5, width: 9, height: 9 } }),
  'max': (x, y) => ({ type: 'rect', shape: { x: x - 1.5, y: y - 8, width: 3, height: 16 } }),
};
function latency(panel, width) {
  const labels = panel.rows.map(r => r.label + (r.absent ? '\n' + r.absent : ''));
  const room = Math.min(widest(labels.flatMap(l => l.split('\n')), 12) + 14, width * 0.4);
  const spans = [], marks = [];
  let least = Infinity, most = 0;
  panel.rows.forEach((r, i) => {
    const values = r.bars.filter(b => b && b.median > 0).map(b => b.median / panel.by);
    if (!values.length) return;
    least = Math.min(least, ...values); most = Math.max(most, ...values);
    spans.push({ value: [values[0], i, values[values.length - 1]], row: r });
    r.bars.forEach(b => { if (b && b.median > 0) marks.push({ value: [b.median / panel.by, i], row: r, bar: b }); });
  });
  // 1, 2, 5, 10 … around the data: the first at or below the least.
  const nice = [];
  for (let e = -3; e <= 12; e++) for (const k of [1, 2, 5]) nice.push(k * Math.pow(10, e));
  const floor = nice.filter(v => v <= least * 1.001).pop() || least;
  const ticks = nice.filter(v => v >= floor && v <= most * 1.12);
  return {
    rows: panel.rows.length, step: 46,
    option: Object.assign(base(), {
      grid: { left: room, right: 30, top: 20, bottom: 26 },
      xAxis: valueAxis({
        type: 'log', min: floor, max: most * 1.12, axisTick: { show: false, customValues: ticks },
        axisLabel: { color: theme.soft, hideOverlap: true, customValues: ticks, formatter: v => String(Number(v.toPrecision(2))) },
        splitLine: { lineStyle: { color: theme.line }, customValues: ticks },
      }),
      yAxis: rowAxis(labels, true, room - 8),
      series: [
        { type: 'custom', name: 'span', silent: true, encode: { x: 0, y: 1 }, data: spans, renderItem: (params, api) => {
          const a = api.coord([api.value(0), api.value(1)]), b = api.coord([api.value(2), api.value(1)]);
          return { type: 'line', shape: { x1: a[0], y1: a[1], x2: b[0], y2: a[1] }, style: { stroke: colour(spans[params.dataIndex].row), lineWidth: 2, opacity: 0.4 } };
        } },
        { type: 'custom', name: 'percentiles', encode: { x: 0, y: 1 }, data: marks, z: 3, renderItem: (params, api) => {
          const m = marks[params.dataIndex], at = api.coord([api.value(0), api.value(1)]);
          const mark = shapes[m.bar.name](at[0], at[1]);
          mark.style = { fill: m.row.light ? theme.ground : colour(m.row), stroke: colour(m.row), lineWidth: 1.6 };
          const children = [mark];
          if (m.bar.name === 'p50' || m.bar.name === 'max') children.push({ type: 'text', style: { x: at[0], y: at[1] - 10, text: m.bar.text, fill: theme.ink, font: '600 11.5px ' + font, align: 'center', verticalAlign: 'bottom' } });
          return { type: 'group', children };
        }, tooltip: { formatter: p => `${escape(p.data.row.id)}<br>${p.data.bar.name}: <b>${p.data.bar.text}</b>` } },
      ],
    }),
  };
}

