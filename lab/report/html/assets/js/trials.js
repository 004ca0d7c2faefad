// ---- every trial of one scenario, also those that do not count.
const strip = { row: 0, metric: 0 };
const stripHas = row => data.trials.metrics.map((m, i) => i).filter(i => row.values[i].some(v => v !== null));

// A mark that says by its shape, too, whether a trial counts.
function trialMark(state, x, y, hue) {
  const line = (x1, y1, x2, y2) => ({ type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: theme.bad, lineWidth: 2.2 } });
  switch (state) {
    case 'counts': return { type: 'circle', shape: { cx: x, cy: y, r: 4 }, style: { fill: hue, stroke: theme.ground, lineWidth: 1 } };
    // The clear square makes a cross as easy to point at as a dot.
    case 'gated': return { type: 'group', children: [{ type: 'rect', shape: { x: x - 7, y: y - 7, width: 14, height: 14 }, style: { fill: 'transparent' } }, line(x - 5, y - 5, x + 5, y + 5), line(x - 5, y + 5, x + 5, y - 5)] };
    case 'profiled': return { type: 'polygon', shape: { points: [[x - 5, y + 4], [x, y - 5], [x + 5, y + 4]] }, style: { fill: theme.ground, stroke: theme.soft, lineWidth: 1.4 } };
  }
  return { type: 'circle', shape: { cx: x, cy: y, r: 3.6 }, style: { fill: theme.ground, stroke: theme.soft, lineWidth: 1.4 } };
}

const stateNames = { counts: 'counts', gated: 'marked, does not count', replaced: 'repeated', profiled: 'with the profiler' };

function everyTrial() {
  const row = data.trials.rows[strip.row], m = data.trials.metrics[strip.metric], sum = row.summary[strip.metric];
  const marks = [];
  (row.values[strip.metric] || []).forEach((v, i) => {
    if (v !== null) marks.push({ value: [row.block[i] + (row.attempt[i] - 1) * 0.18 + (row.state[i] === 'profiled' ? 0.12 : 0), v / m.by], state: row.state[i], block: row.block[i], attempt: row.attempt[i], why: row.why[i] });
  });
  const last = Math.max(1, ...row.block);
  const all = marks.map(d => d.value[1]).concat(sum ? [sum.low / m.by, sum.high / m.by] : []);
  const low = Math.min(...all), high = Math.max(...all), pad = (high - low || Math.abs(high) || 1) * 0.12;
  const place = document.getElementById('c-trials');
  const count = state => marks.filter(d => d.state === state).length;
  const said = `${row.id}, ${m.name}: ` + (sum ? `median ${sum.text}${unit(m.unit)}${sum.range ? ' ' + sum.range : ''}, ` : 'no figure, ') +
    `${count('counts')} trials count` + (count('gated') ? `, ${count('gated')} marked` : '') + (count('profiled') ? `, ${count('profiled')} with the profiler` : '') + (row.failed.length ? `, ${row.failed.length} failed` : '');
  place.setAttribute('aria-label', 'Every trial of ' + said);
  document.getElementById('trials-shown').textContent = said + '.';
  document.getElementById('trials-failed').replaceChildren(...row.failed.map(text => Object.assign(document.createElement('li'), { textContent: text })));
  const series = Object.keys(stateNames).map(state => {
    const list = marks.filter(d => d.state === state);
    return {
      type: 'custom', name: stateNames[state], encode: { x: 0, y: 1 }, data: list, z: 3, clip: false,
      renderItem: (params, api) => { const at = api.coord([api.value(0), api.value(1)]); return trialMark(state, at[0], at[1], colour(row)); },
      tooltip: { formatter: p => `${escape(row.id)}, block ${p.data.block}${p.data.attempt > 1 ? ', attempt ' + p.data.attempt : ''}<br><b>${figure(p.value[1])}${unit(m.unit)}</b>` +
        (p.data.why ? `<br><span style="white-space:normal;display:block;max-width:22em">${state === 'gated' ? '✗ ' : ''}${escape(p.data.why)}</span>` : '') },
    };
  });
  if (sum) series.unshift({
    type: 'custom', name: 'median', silent: true, encode: { x: 0, y: 1 }, data: [{ value: [1, sum.median / m.by] }],
    renderItem: (params, api) => {
      const area = params.coordSys, y = v => api.coord([1, v / m.by])[1], from = y(sum.high), to = y(sum.low), at = y(sum.median);
      return { type: 'group', children: [
        { type: 'rect', shape: { x: area.x, y: from, width: area.width, height: Math.max(to - from, 0) }, style: { fill: colour(row), opacity: 0.16 } },
        { type: 'line', shape: { x1: area.x, y1: at, x2: area.x + area.width, y2: at }, style: { stroke: colour(row), lineWidth: 1.8 } },
        { type: 'text', style: { x: area.x + area.width + 6, y: at, text: sum.text, fill: theme.ink, font: '600 12px ' + font, verticalAlign: 'middle' } },
      ] };
    },
  });
  return {
    height: 270,
    option: Object.assign(base(), {
      grid: { left: 8, right: sum ? widest([sum.text], 12, 600) + 14 : 14, top: 30, bottom: 34, containLabel: true },
      xAxis: valueAxis({ name: 'block', nameLocation: 'middle', nameGap: 24, nameTextStyle: { color: theme.soft }, min: 0.5, max: last + 0.7, minInterval: 1, splitLine: { show: false }, axisLabel: { color: theme.soft, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: v => Number.isInteger(v) ? String(v) : '' } }),
      yAxis: valueAxis({ name: m.unit, min: low - pad, max: high + pad, nameTextStyle: { color: theme.soft, align: 'left' }, axisLabel: { color: theme.soft, showMinLabel: false, showMaxLabel: false, formatter: v => String(Number(v.toPrecision(4))) } }),
      series,
    }),
  };
}
