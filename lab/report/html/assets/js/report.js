// ---- a link to a folded section opens it.
document.querySelectorAll('.contents a').forEach(a => a.addEventListener('click', () => {
  const fold = document.querySelector(a.hash).closest('details');
  if (fold) fold.open = true;
}));

// ---- the charts of a report.
const panels = data.panels || [];
panels.forEach(p => add('c-' + p.id, width => (p.kind === 'latency' ? latency : bars)(p, width)));
(data.cells || []).forEach(c => add('c-' + c.id, width => cells(c, width)));
if (data.ratios) add('c-ratios', width => ratios(data.ratios, width));
if (data.series) { add('c-series', time); add('c-series-latency', roundTrips); }
(data.ladders || []).forEach(l => add('c-' + l.id, width => waterfall(l, width)));
(data.curves || []).forEach(c => add('c-' + c.id, () => curves(c)));
if (data.trials) add('c-trials', everyTrial);
