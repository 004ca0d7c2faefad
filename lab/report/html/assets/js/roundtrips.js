// ---- latency over time: round trips of the trial that the time series shows.
function roundTrips() {
  const t = data.series[pick.scenario].trials[pick.trial];
  if (!t.latency) return null;
  const measured = t.latency.flat().filter(v => v > 0);
  const scale = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']].find(k => Math.min(...measured) >= k[0]) || [1, 'ns'];
  const line = (name, values, dash) => ({
    type: 'line', name, symbol: 'none', connectNulls: false, data: values.map((v, i) => [t.at[i], v > 0 ? v / scale[0] : null]),
    lineStyle: { color: colour(data.series[pick.scenario]), width: 2, type: dash }, itemStyle: { color: colour(data.series[pick.scenario]) },
  });
  const series = [line('longest round trip', t.latency[1], [4, 3]), line('mean round trip', t.latency[0], 'solid')];
  if (t.window) series[0].markArea = { silent: true, itemStyle: { color: theme.soft, opacity: 0.09 }, data: [[{ xAxis: 0 }, { xAxis: t.window }]] };
  return {
    height: 260,
    option: Object.assign(base(), {
      legend: { top: 0, left: 0, textStyle: { color: theme.ink, fontFamily: font }, itemWidth: 30, itemStyle: { opacity: 0 } },
      tooltip: Object.assign(base().tooltip, { trigger: 'axis', formatter: ps => `${figure(ps[0].value[0])} s` + ps.filter(p => p.value[1] !== null).map(p => `<br>${escape(p.seriesName)}: <b>${figure(p.value[1])} ${scale[1]}</b>`).join('') }),
      grid: { left: 8, right: 8, top: 56, bottom: 34, containLabel: true },
      xAxis: valueAxis({ name: 'seconds', nameLocation: 'middle', nameGap: 24, nameTextStyle: { color: theme.soft }, min: Math.min(...t.at), max: Math.max(...t.at), splitLine: { show: false }, axisLabel: { color: theme.soft, hideOverlap: true, formatter: v => String(Math.round(v * 10) / 10) } }),
      yAxis: valueAxis({ type: 'log', name: scale[1], nameTextStyle: { color: theme.soft, align: 'left' } }),
      series,
    }),
  };
}
