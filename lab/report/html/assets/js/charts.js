// ---- the charts of the page.
const charts = [];
function add(id, make) {
  const place = document.getElementById(id);
  if (place) charts.push({ place, make, chart: null });
}
