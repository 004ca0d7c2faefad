// ---- waterfall of a ladder: from rung to rung, one metric at a time.
const climbed = {}; // by ladder, the metric that is shown

// Diagonal strokes within a box: a step of which it is not known whether it is one.
function hatch(x, y, w, h, stroke) {
  const lines = [];
  for (let k = -h; k < w; k += 6) {
    const from = Math.max(k, 0), to = Math.min(k + h, w);
    if (to > from) lines.push({ type: 'line', shape: { x1: x + from, y1: y + h - (from - k), x2: x + to, y2: y + h - (to - k) }, style: { stroke, lineWidth: 1 } });
  }
  return lines;
}

function waterfallRows(m) {
  const rows = [];
  let level = null;
  m.rungs.forEach((r, i) => {
    const row = { rung: r, kind: i ? 'step' : 'start', label: r.name, from: 0, to: null };
    if (!i) row.to = r.figure ? r.figure.median : null;
    else if (r.added && level !== null) Object.assign(row, { from: level, to: level + r.added.median, low: level + r.added.low, high: level + r.added.high });
    if (r.figure) level = r.figure.median;
    rows.push(row);
  });
  const top = m.rungs[m.rungs.length - 1];
  if (m.rungs.length > 1 && top.figure) rows.push({ rung: top, kind: 'total', label: 'in all', from: 0, to: top.figure.median });
  return rows;
}

// Names of steps are phrases: two lines rather than a part of one.
function wrapped(axis) {
  axis.axisLabel.overflow = 'break';
  return axis;
}

function waterfall(ladder, width) {
  const m = ladder.metrics[climbed[ladder.id] || 0], by = m.by, small = narrow();
  const rows = waterfallRows(m);
  const words = row => {
    const r = row.rung;
    if (row.to === null) return r.verdict.word ? r.verdict.sign + ' ' + r.verdict.word : 'not known';
    if (row.kind !== 'step') return r.figure.text + (small ? '' : unit(m.unit));
    const sure = r.verdict.sign + (small ? '' : ' ' + r.verdict.word);
    return r.added.text + (small ? ' ' : '   ') + sure;
  };
  const texts = rows.map(words);
  const values = rows.flatMap(r => r.to === null ? [] : [r.from, r.to, r.low ?? r.to, r.high ?? r.to]).map(v => v / by);
  const room = Math.min(widest(rows.map(r => r.label), 12) + 16, width * 0.34);
  const items = rows.map((row, i) => ({ value: [(row.to === null ? row.from : row.to) / by, i], row }));
  function render(params, api) {
    const { row } = items[params.dataIndex], r = row.rung, y = api.coord([0, params.dataIndex])[1];
    const at = v => api.coord([v / by, 0])[0];
    const height = 20, text = (x, fill) => ({ type: 'text', style: { x, y, text: texts[params.dataIndex], fill, font: '600 12px ' + font, verticalAlign: 'middle' } });
    if (row.to === null) return { type: 'group', children: [text(at(row.from) + 8, theme.soft)] };
    const x = Math.min(at(row.from), at(row.to)), w = Math.max(Math.abs(at(row.to) - at(row.from)), 2), top = y - height / 2;
    const sure = row.kind !== 'step' || r.verdict.class === 'differs';
    const hue = row.kind !== 'step' || !sure ? theme.soft : r.tone === 'better' ? theme.better : theme.worse;
    const children = [];
    if (row.kind === 'step') { // where the rung before ended
      const above = api.coord([0, params.dataIndex - 1])[1];
      children.push({ type: 'line', shape: { x1: at(row.from), y1: above + height / 2, x2: at(row.from), y2: top }, style: { stroke: theme.soft, lineWidth: 1, lineDash: [2, 2] } });
    }
    children.push({ type: 'rect', shape: { x, y: top, width: w, height }, style: { fill: hue, opacity: sure ? (row.kind === 'step' ? 0.9 : 0.45) : 0.12 } });
    if (!sure) children.push(...hatch(x, top, w, height, hue));
    children.push({ type: 'rect', shape: { x, y: top, width: w, height }, style: { fill: 'none', stroke: hue, lineWidth: 1.2 } });
    let right = x + w;
    const whisker = (low, high) => {
      const a = at(low), b = at(high), style = { stroke: theme.ink, lineWidth: 1.4 };
      children.push({ type: 'line', shape: { x1: a, y1: y, x2: b, y2: y }, style }, { type: 'line', shape: { x1: a, y1: y - 5, x2: a, y2: y + 5 }, style }, { type: 'line', shape: { x1: b, y1: y - 5, x2: b, y2: y + 5 }, style });
      right = Math.max(right, a, b);
    };
    if (row.kind === 'step') whisker(row.low, row.high); else whisker(r.figure.low, r.figure.high);
    children.push(text(right + 8, theme.ink));
    return { type: 'group', children };
  }
  const tip = ({ data }) => {
    const { row } = data, r = row.rung, v = r.verdict;
    if (row.to === null) return `${escape(row.label)}<br>${escape(r.scenario)}: ${escape(words(row))}` + (r.ratio ? `<br>${escape(r.ratio)}` : '');
    if (row.kind !== 'step') return `${escape(row.label)}<br>${escape(r.scenario)}: <b>${escape(r.figure.text)}${unit(m.unit)}</b> ${escape(r.figure.range || '')}`;
    return `${escape(row.label)} adds<br><b>${escape(r.added.text)}${unit(m.unit)}</b>` + (r.ratio ? `<br>${escape(r.ratio)}` : '') +
      `<br>${escape(v.sign)} ${escape(v.word)}${v.more ? ' (' + escape(v.more) + ')' : ''}` + (r.share ? `<br>${escape(r.share)}` : '');
  };
  return {
    height: rows.length * 36 + 54,
    option: Object.assign(base(), {
      grid: { left: room, right: widest(texts, 12, 600) + 20, top: 8, bottom: 40 },
      xAxis: valueAxis({ name: m.unit, nameLocation: 'middle', nameGap: 24, nameTextStyle: { color: theme.soft }, min: Math.min(0, ...values), max: Math.max(...values, 0) || 1, axisLabel: { color: theme.soft, hideOverlap: true, showMaxLabel: false, formatter: v => String(Number(v.toPrecision(4))) } }),
      yAxis: wrapped(rowAxis(rows.map(r => r.label), true, room - 8)),
      series: [{ type: 'custom', name: 'steps', renderItem: render, encode: { x: 0, y: 1 }, data: items, clip: false, tooltip: { formatter: tip } }],
    }),
  };
}
