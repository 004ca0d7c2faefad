// ---- a figure of each system over one property of the traffic.
function curves(c) {
  const dashes = ['solid', 'dashed', 'dotted', [8, 3, 2, 3]];
  const lines = c.lines.map(l => ({ ...l, stroke: colour(l), dots: l.bars.flatMap((b, i) => b ? [{ value: [i, b.median / c.by, b.low / c.by, b.high / c.by], bar: b }] : []) }));
  const shift = i => (i - (lines.length - 1) / 2) * Math.min(7, 60 / lines.length); // whiskers stand side by side
  const whiskers = (l, i) => ({
    type: 'custom', name: l.name, encode: { x: 0, y: [1, 2, 3] }, data: l.dots, z: 3, color: l.stroke,
    renderItem: (params, api) => {
      const x = api.coord([api.value(0), 0])[0] + shift(i), y = v => api.coord([0, api.value(v)])[1];
      return { type: 'group', children: [
        { type: 'line', shape: { x1: x, y1: y(2), x2: x, y2: y(3) }, style: { stroke: l.stroke, lineWidth: 1.4 } },
        { type: 'circle', shape: { cx: x, cy: y(1), r: 3.5 }, style: { fill: l.stroke, stroke: theme.ground, lineWidth: 1 } },
      ] };
    },
    tooltip: { formatter: p => `${escape(l.name)}, ${escape(c.values[p.value[0]])}<br><b>${escape(p.data.bar.text)}${unit(c.unit)}</b>` },
  });
  const median = (l, i) => ({
    type: 'custom', name: l.name, encode: { x: 0, y: 1 }, data: [l.dots.map(d => d.value[0])], silent: true, color: l.stroke,
    renderItem: (params, api) => ({
      type: 'polyline', shape: { points: l.dots.map(d => { const at = api.coord([d.value[0], d.value[1]]); return [at[0] + shift(i), at[1]]; }) },
      style: { stroke: l.stroke, fill: 'none', lineWidth: 1.6, lineDash: dashes[l.dash % dashes.length] },
    }),
  });
  return {
    height: 320 + 18 * Math.ceil(lines.length / 5),
    option: Object.assign(base(), {
      legend: { bottom: 0, data: lines.map(l => ({ name: l.name, itemStyle: { color: l.stroke } })), icon: 'circle', itemWidth: 10, itemHeight: 10, textStyle: { color: theme.ink } },
      grid: { left: 8, right: 20, top: 14, bottom: 44 + 18 * Math.ceil(lines.length / 5), containLabel: true },
      xAxis: { type: 'category', data: c.values, name: c.property, nameLocation: 'middle', nameGap: 26, nameTextStyle: { color: theme.soft }, axisTick: { show: false }, axisLine: { lineStyle: { color: theme.line } }, axisLabel: { color: theme.ink } },
      yAxis: valueAxis({ min: 0, max: v => v.max * 1.05, axisLabel: { color: theme.soft, hideOverlap: true, formatter: figure } }),
      series: lines.flatMap((l, i) => [whiskers(l, i), median(l, i)]),
    }),
  };
}
