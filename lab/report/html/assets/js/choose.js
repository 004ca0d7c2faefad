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
const redraw = () => charts.filter(c => c.place.id.startsWith('c-series')).forEach(draw);
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

(data.ladders || []).forEach(l => {
  const select = document.getElementById(l.id + '-metric');
  if (!select) return;
  const shown = document.getElementById(l.id + '-shown');
  const name = () => { shown.textContent = l.metrics[climbed[l.id] || 0].name + ', ' + l.metrics[climbed[l.id] || 0].unit; };
  fill(select, l.metrics.map(m => m.name), 0);
  name();
  select.addEventListener('change', () => {
    climbed[l.id] = Number(select.value);
    name();
    charts.filter(c => c.place.id === 'c-' + l.id).forEach(draw);
  });
});
if (data.trials) {
  const of = document.getElementById('trials-scenario'), what = document.getElementById('trials-metric');
  const metrics = () => {
    const has = stripHas(data.trials.rows[strip.row]);
    if (!has.includes(strip.metric)) strip.metric = has.length ? has[0] : 0;
    what.replaceChildren(...has.map(i => new Option(data.trials.metrics[i].name, i, i === strip.metric, i === strip.metric)));
  };
  const again = () => charts.filter(c => c.place.id === 'c-trials').forEach(draw);
  // The scenario with most to explain comes first.
  const marked = data.trials.rows.map(r => r.state.filter(s => s === 'gated').length);
  strip.row = marked.indexOf(Math.max(...marked));
  fill(of, data.trials.rows.map(r => r.id), strip.row);
  metrics();
  of.addEventListener('change', () => { strip.row = Number(of.value); metrics(); again(); });
  what.addEventListener('change', () => { strip.metric = Number(what.value); again(); });
  again();
}
