// ---- the charts of a comparison or a trend.
if (data.ratios) add('c-ratios', width => ratios(data.ratios, width));
(data.series || []).forEach(s => add(s.id, () => trend(s)));
