// ---- ratios to the baseline, grouped by metric.
function ratios(groups, width) {
  const labels = [], dots = [], blocks = [], rich = [];
  groups.forEach(g => {
    rich.push(true);
    labels.push(g.name);
    const first = labels.length;
    g.rows.forEach(r => { dots.push({ value: [r.median, labels.length, r.low, r.high], row: r, group: g }); rich.push(false); labels.push(r.label); });
    blocks.push({ value: [1, first, labels.length - 1], better: g.better });
  });
  const small = narrow();
  const texts = dots.map(d => small ? d.row.text.replace(' [', '\n[') : d.row.text);
  const low = Math.min(0.95, ...dots.map(d => d.row.low)), high = Math.max(1.05, ...dots.map(d => d.row.high));
  const log = high / Math.max(low, 1e-6) > 6 && low > 0;
  const pad = (high - low) * 0.06;
  const from = log ? low / 1.1 : Math.max(0, low - pad), to = log ? high * 1.1 : high + pad;
  const room = Math.min(widest(labels, 12.5, 700) + 18, width * 0.48);
  return {
    rows: labels.length, step: small ? 34 : 27,
    option: Object.assign(base(), {
      grid: { left: room, right: widest(texts.flatMap(t => t.split('\n')), 12) + 18, top: 6, bottom: 26 },
      xAxis: valueAxis({ type: log ? 'log' : 'value', min: from, max: to, axisLabel: { color: theme.soft, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: v => String(Number(v.toPrecision(6))) } }),
      yAxis: Object.assign(rowAxis(labels, true, room - 10), {
        axisLabel: { interval: 0, margin: 10, width: room - 10, overflow: 'truncate', formatter: (v, i) => rich[i] ? '{head|' + v.replace(/[{}|]/g, '') + '}' : v.replace(/[{}|]/g, ''), color: theme.ink, rich: { head: { fontWeight: 700, fontSize: 12.5, color: theme.ink, fontFamily: font } } },
      }),
      series: [
        { type: 'custom', name: 'dearer', silent: true, encode: { x: 0, y: 1 }, data: blocks, renderItem: (params, api) => {
          const b = blocks[params.dataIndex], one = api.coord([1, b.value[1]]), half = api.size([0, 1])[1] / 2;
          const area = params.coordSys, top = one[1] - half, bottom = api.coord([1, b.value[2]])[1] + half;
          const left = b.better > 0;
          const x = left ? area.x : one[0], w = left ? one[0] - area.x : area.x + area.width - one[0];
          return { type: 'group', children: [
            { type: 'rect', shape: { x, y: top, width: Math.max(w, 0), height: bottom - top }, style: { fill: b.better ? theme.shade : 'none' } },
            { type: 'line', shape: { x1: one[0], y1: top, x2: one[0], y2: bottom }, style: { stroke: theme.ink, lineWidth: 1.3 } },
          ] };
        } },
        { type: 'custom', name: 'ratios', encode: { x: 0, y: 1 }, data: dots, z: 3, clip: false, renderItem: (params, api) => {
          const d = dots[params.dataIndex], hue = colour(d.row);
          const at = api.coord([api.value(0), api.value(1)]), l = api.coord([api.value(2), api.value(1)])[0], h = api.coord([api.value(3), api.value(1)])[0];
          const y = at[1], style = { stroke: hue, lineWidth: 2 };
          return { type: 'group', children: [
            { type: 'line', shape: { x1: l, y1: y, x2: h, y2: y }, style },
            { type: 'line', shape: { x1: l, y1: y - 5, x2: l, y2: y + 5 }, style },
            { type: 'line', shape: { x1: h, y1: y - 5, x2: h, y2: y + 5 }, style },
            { type: 'circle', shape: { cx: at[0], cy: y, r: 5 }, style: { fill: d.row.distinct ? hue : theme.ground, stroke: hue, lineWidth: 2 } },
            { type: 'text', style: { x: params.coordSys.x + params.coordSys.width + 12, y, text: texts[params.dataIndex], fill: theme.ink, font: '12px ' + font, verticalAlign: 'middle' } },
          ] };
        }, tooltip: { formatter: p => `${escape(p.data.group.name)}<br>${escape(p.data.row.subject)} of ${escape(p.data.row.baseline)}<br><b>${escape(p.data.row.text)}</b><br>${escape(p.data.row.mark.sign)} ${escape(p.data.row.mark.word)}${p.data.row.mark.more ? ' (' + escape(p.data.row.mark.more) + ')' : ''}` } },
      ],
    }),
  };
}

