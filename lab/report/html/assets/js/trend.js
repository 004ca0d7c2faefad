// ---- one metric of a scenario over the runs of its suite.
function trend(s) {
  const dots = s.points.map((p, i) => ({ value: [i, p.median, p.low, p.high], point: p }));
  const low = Math.min(...s.points.map(p => p.low)), high = Math.max(...s.points.map(p => p.high));
  const pad = (high - low || Math.abs(high) || 1) * 0.1;
  const hue = theme.systems[1], last = dots.length - 1;
  // The level between two changes, as a line.
  const levels = s.levels.map(l => ({ value: [l.from, l.value, l.to] }));
  const changes = dots.filter(d => d.point.change);
  const between = (api, i) => (api.coord([i - 1, 0])[0] + api.coord([i, 0])[0]) / 2;
  return {
    height: 230,
    option: Object.assign(base(), {
      grid: { left: 8, right: 14, top: 30, bottom: 6, containLabel: true },
      xAxis: { type: 'category', data: s.points.map(p => p.date), axisTick: { show: false }, axisLine: { lineStyle: { color: theme.line } }, axisLabel: { color: theme.soft, hideOverlap: true, formatter: d => d.replace(' ', '\n') } },
      yAxis: valueAxis({ name: s.unit, min: low - pad, max: high + pad, nameTextStyle: { color: theme.soft, align: 'left' }, axisLabel: { color: theme.soft, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: figure } }),
      series: [
        { type: 'line', name: 'median', silent: true, symbol: 'none', data: s.points.map(p => p.median), lineStyle: { color: hue, width: 1.2, opacity: 0.5 } },
        { type: 'custom', name: 'levels', silent: true, encode: { x: 0, y: 1 }, data: levels, renderItem: (params, api) => {
          const area = params.coordSys, from = api.value(0), to = api.value(2), y = api.coord([0, api.value(1)])[1];
          const x1 = from > 0 ? between(api, from) : area.x, x2 = to < last ? between(api, to + 1) : area.x + area.width;
          return { type: 'line', shape: { x1, y1: y, x2, y2: y }, style: { stroke: theme.ink, lineWidth: 1.2, lineDash: [2, 3] } };
        } },
        { type: 'custom', name: 'changes', silent: true, encode: { x: 0, y: 1 }, data: changes, clip: false, renderItem: (params, api) => {
          const area = params.coordSys, x = between(api, api.value(0));
          return { type: 'group', children: [
            { type: 'line', shape: { x1: x, y1: area.y, x2: x, y2: area.y + area.height }, style: { stroke: theme.bad, lineWidth: 1.4, lineDash: [5, 3] } },
            { type: 'text', style: { x: Math.min(x, area.x + area.width - 40), y: area.y - 4, text: changes[params.dataIndex].point.change, fill: theme.bad, font: '600 12px ' + font, verticalAlign: 'bottom', align: 'center' } },
          ] };
        } },
        { type: 'custom', name: 'runs', encode: { x: 0, y: 1 }, data: dots, z: 3, renderItem: (params, api) => {
          const at = api.coord([api.value(0), api.value(1)]), l = api.coord([0, api.value(2)])[1], h = api.coord([0, api.value(3)])[1];
          const style = { stroke: hue, lineWidth: 1.6 }, x = at[0];
          return { type: 'group', children: [
            { type: 'line', shape: { x1: x, y1: l, x2: x, y2: h }, style },
            { type: 'circle', shape: { cx: x, cy: at[1], r: 4.5 }, style: { fill: dots[params.dataIndex].point.change ? theme.bad : hue, stroke: theme.ground, lineWidth: 1 } },
          ] };
        }, tooltip: { formatter: p => p.data.point.tip.map((t, i) => i === 1 ? `<b>${escape(t)}</b>` : escape(t)).join('<br>') } },
      ],
    }),
  };
}
