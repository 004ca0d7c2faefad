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
  const out = (t.out || []).map(([from, to]) => [{ xAxis: from, name: 'left out', label: { position: 'insideTop', color: theme.soft }, itemStyle: { color: theme.soft, opacity: 0.35 } }, { xAxis: to }]);
  if (t.window) series[0].markArea = { silent: true, itemStyle: { color: theme.soft, opacity: 0.09 }, data: [[{ xAxis: 0 }, { xAxis: t.window }], ...out] };
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

