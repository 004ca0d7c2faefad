// Draws the report's charts. All text and every table stand in the page
// already; nothing here is fetched.
(function () {
  'use strict';
  const root = document.documentElement;
  const data = JSON.parse(document.getElementById('data').textContent);
  root.classList.add('js');

  // ---- theme: the custom properties of the style sheet are the only source.
  let theme = {};
  function readTheme() {
    const css = getComputedStyle(root);
    const get = name => css.getPropertyValue('--' + name).trim();
    theme = { systems: [] };
    for (const name of ['ground', 'raised', 'ink', 'soft', 'line', 'accent', 'shade', 'bad']) theme[name] = get(name);
    for (let i = 0; i < 8; i++) theme.systems.push(get('s' + i));
  }
  const font = getComputedStyle(document.body).fontFamily;
  const colour = row => theme.systems[row.colour];
  const escape = text => String(text).replace(/[&<>"']/g, c => '&#' + c.charCodeAt(0) + ';');
  const narrow = () => window.innerWidth < 720 && !root.dataset.paper;

  // ---- numbers.
  function figure(v) {
    const a = Math.abs(v);
    if (a >= 1000) return Math.round(v).toLocaleString('en-US');
    return v.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : a >= 1 ? 2 : a === 0 ? 0 : 3);
  }
  const unit = u => (u === '' || u === '/s' ? u : ' ' + u);

  // Text in pixels, for margins that labels fill.
  const ruler = document.createElement('canvas').getContext('2d');
  function widest(texts, size, weight) {
    ruler.font = `${weight || 400} ${size}px ${font}`;
    return texts.reduce((w, t) => Math.max(w, ruler.measureText(t).width), 0);
  }

  // ---- what all charts share.
  function base() {
    return {
      animation: false,
      textStyle: { fontFamily: font, color: theme.ink, fontSize: 12 },
      tooltip: {
        trigger: 'item', confine: true, backgroundColor: theme.ground, borderColor: theme.line,
        textStyle: { color: theme.ink, fontFamily: font, fontSize: 12 },
      },
    };
  }
  function valueAxis(extra) {
    return Object.assign({
      type: 'value', axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: theme.soft, hideOverlap: true }, splitLine: { lineStyle: { color: theme.line } },
    }, extra);
  }
  function rowAxis(labels, show, room) {
    return {
      type: 'category', inverse: true, data: labels, axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { show, interval: 0, color: theme.ink, width: room, overflow: 'truncate', lineHeight: 15 },
    };
  }

  // A spread that is the same at every drawing and never overlaps its row's edge.
  const jitter = i => ((i * 0.618034) % 1) - 0.5;

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
      const band = api.size([0, 1])[1] * 0.62;
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
      rows: panel.rows.length, step: sides > 1 || panels.some(p => p.sides.length > 1) ? 54 : 46,
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
    const texts = dots.map(d => small ? d.row.text.split(' ')[0] : d.row.text);
    const low = Math.min(0.95, ...dots.map(d => d.row.low)), high = Math.max(1.05, ...dots.map(d => d.row.high));
    const log = high / Math.max(low, 1e-6) > 6 && low > 0;
    const pad = (high - low) * 0.06;
    const from = log ? low / 1.1 : Math.max(0, low - pad), to = log ? high * 1.1 : high + pad;
    const room = Math.min(widest(labels, 12.5, 700) + 18, width * 0.48);
    return {
      rows: labels.length, step: 27,
      option: Object.assign(base(), {
        grid: { left: room, right: widest(texts, 12) + 18, top: 6, bottom: 26 },
        xAxis: valueAxis({ type: log ? 'log' : 'value', min: from, max: to, axisLabel: { color: theme.soft, hideOverlap: true, showMinLabel: false, showMaxLabel: false, formatter: v => figure(v).replace(/0+$/, '').replace(/\.$/, '') } }),
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
          }, tooltip: { formatter: p => `${escape(p.data.group.name)}<br>${escape(p.data.row.subject)} of ${escape(p.data.row.baseline)}<br><b>${escape(p.data.row.text)}</b>${p.data.row.distinct ? '' : '<br>no difference shown'}` } },
        ],
      }),
    };
  }

  // ---- time series of one trial.
  const pick = { scenario: 0, trial: 0 };
  function time() {
    const s = data.series[pick.scenario], t = s.trials[pick.trial];
    const top = Math.max(...t.bps, 1);
    const scale = [[1e9, 'Gbit/s'], [1e6, 'Mbit/s'], [1e3, 'kbit/s'], [1, 'bit/s']].find(k => top >= k[0]) || [1, 'bit/s'];
    const line = (name, values, hue, axis, dash) => ({
      type: 'line', name, yAxisIndex: axis, symbol: 'none', data: values.map((v, i) => [t.at[i], axis ? v : v / scale[0]]),
      lineStyle: { color: hue, width: 2, type: dash }, itemStyle: { color: hue },
    });
    const series = [line('throughput', t.bps, colour(s), 0, 'solid')];
    if (t.cpu[0]) series.push(line(t.cpu[1] ? 'sender CPU' : 'CPU', t.cpu[0], theme.ink, 1, [6, 3]));
    if (t.cpu[1]) series.push(line('receiver CPU', t.cpu[1], theme.ink, 1, [1.5, 3]));
    if (t.window) series[0].markArea = { silent: true, itemStyle: { color: theme.soft, opacity: 0.09 }, data: [[{ xAxis: 0 }, { xAxis: t.window }]] };
    const chart = document.getElementById('c-series');
    const note = `${s.id}, block ${t.block}${t.median ? ' (median trial)' : ''}`;
    document.getElementById('series-shown').textContent = note;
    chart.setAttribute('aria-label', 'Time series of throughput and CPU: ' + note);
    return {
      height: 320,
      option: Object.assign(base(), {
        legend: { top: 0, left: 0, textStyle: { color: theme.ink, fontFamily: font }, itemWidth: 30, itemStyle: { opacity: 0 } },
        tooltip: Object.assign(base().tooltip, { trigger: 'axis', formatter: ps => `${figure(ps[0].value[0])} s` + ps.map(p => `<br>${escape(p.seriesName)}: <b>${figure(p.value[1])} ${p.seriesIndex ? '%' : scale[1]}</b>`).join('') }),
        grid: { left: 8, right: 8, top: 56, bottom: 34, containLabel: true },
        xAxis: valueAxis({ name: 'seconds', nameLocation: 'middle', nameGap: 24, nameTextStyle: { color: theme.soft }, min: 'dataMin', max: 'dataMax', splitLine: { show: false }, axisLabel: { color: theme.soft, hideOverlap: true, formatter: v => String(Math.round(v * 10) / 10) } }),
        yAxis: [
          valueAxis({ name: scale[1], min: 0, nameTextStyle: { color: theme.soft, align: 'left' } }),
          valueAxis({ name: 'CPU %', min: 0, max: 100, nameTextStyle: { color: theme.soft, align: 'right' }, splitLine: { show: false } }),
        ],
        series,
      }),
    };
  }

  // ---- drawing, and drawing again when theme, width or paper change.
  const panels = data.panels || [];
  const charts = [];
  function add(id, make) {
    const place = document.getElementById(id);
    if (place) charts.push({ place, make, chart: null });
  }
  panels.forEach(p => add('c-' + p.id, width => (p.kind === 'latency' ? latency : bars)(p, width)));
  if (data.ratios) add('c-ratios', width => ratios(data.ratios, width));
  if (data.series) add('c-series', time);

  const paperWidth = 700;
  function draw(c) {
    const width = root.dataset.paper ? paperWidth : c.place.clientWidth;
    if (!width) return;
    const made = c.make(width);
    const height = made.height || made.rows * made.step + 40;
    c.place.style.height = root.dataset.paper ? 'auto' : height + 'px';
    if (!c.chart) c.chart = echarts.init(c.place, null, { renderer: 'svg', width, height });
    c.chart.resize({ width, height });
    c.chart.setOption(made.option, true);
    c.chart.getZr().flush(); // before paper is printed
    // On paper the style sheet scales the picture to the page.
    const svg = c.place.querySelector('svg');
    if (svg) svg.setAttribute('viewBox', `0 0 ${width} ${height}`);
  }
  function drawAll() { readTheme(); charts.forEach(draw); }
  drawAll();
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAll);
  window.addEventListener('beforeprint', () => { root.dataset.paper = 'yes'; document.querySelectorAll('.topology').forEach(t => { t.hidden = false; }); drawAll(); });
  window.addEventListener('afterprint', () => { delete root.dataset.paper; showPath(); drawAll(); });
  let last = window.innerWidth, due = 0;
  window.addEventListener('resize', () => {
    if (window.innerWidth === last || root.dataset.paper) return;
    last = window.innerWidth;
    cancelAnimationFrame(due);
    due = requestAnimationFrame(drawAll);
  });

  // ---- choosing.
  function fill(select, names, chosen) {
    select.replaceChildren(...names.map((n, i) => new Option(n, i, i === chosen, i === chosen)));
  }
  const scenario = document.getElementById('series-scenario'), trial = document.getElementById('series-trial');
  function trials() {
    const list = data.series[pick.scenario].trials;
    pick.trial = Math.max(0, list.findIndex(t => t.median));
    fill(trial, list.map(t => 'block ' + t.block + (t.median ? ' (median)' : '')), pick.trial);
  }
  const redraw = () => charts.filter(c => c.place.id === 'c-series').forEach(draw);
  if (scenario && data.series) {
    fill(scenario, data.series.map(s => s.id), 0);
    trials();
    scenario.addEventListener('change', () => { pick.scenario = Number(scenario.value); trials(); redraw(); });
    trial.addEventListener('change', () => { pick.trial = Number(trial.value); redraw(); });
    redraw();
  }
  const way = document.getElementById('path-scenario');
  function showPath() {
    if (!way) return;
    document.querySelectorAll('.topology').forEach((t, i) => { t.hidden = i !== way.selectedIndex; });
  }
  if (way) {
    // The last two-node stream is the most telling: the longest way.
    const longest = [...document.querySelectorAll('.topology')].map(t => t.querySelectorAll('tbody tr').length);
    way.selectedIndex = longest.indexOf(Math.max(...longest));
    way.addEventListener('change', showPath);
    showPath();
  }

  // ---- tables sort by a click on a heading.
  document.querySelectorAll('table.figures').forEach(table => {
    table.querySelectorAll('thead th').forEach((head, column) => {
      const button = document.createElement('button');
      button.type = 'button'; button.className = 'sort';
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener('click', () => {
        const down = head.getAttribute('aria-sort') !== 'descending';
        table.querySelectorAll('th[aria-sort]').forEach(h => h.removeAttribute('aria-sort'));
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const key = row => row.children[column].dataset.value;
        const compare = (a, b) => {
          const x = key(a), y = key(b);
          if (x !== undefined && y !== undefined) return (y - x) * (down ? 1 : -1);
          if (x !== undefined || y !== undefined) return x === undefined ? 1 : -1;
          return a.children[column].textContent.localeCompare(b.children[column].textContent) * (down ? -1 : 1);
        };
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort(compare));
      });
    });
  });

  // ---- the raw figures.
  const download = document.getElementById('download');
  if (download) download.addEventListener('click', async event => {
    if (download.dataset.ready) return; // the second click is the browser's
    event.preventDefault();
    const packed = Uint8Array.from(atob(document.getElementById('raw').textContent.trim()), c => c.charCodeAt(0));
    const json = await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).blob();
    download.href = URL.createObjectURL(new Blob([json], { type: 'application/json' }));
    download.dataset.ready = 'yes';
    download.click();
  });
})();
