// ---- drawing, and drawing again when theme, width or paper change.
const paperWidth = 700;
function draw(c) {
  const width = root.dataset.paper ? paperWidth : c.place.clientWidth;
  if (!width) return;
  const made = c.make(width);
  if (!made) { // nothing to show for this choice
    c.place.style.height = '0';
    if (c.chart) c.chart.clear();
    return;
  }
  const height = made.height || made.rows * made.step + 40;
  c.place.style.height = root.dataset.paper ? 'auto' : height + 'px';
  if (!c.chart) {
    c.chart = echarts.init(c.place, null, { renderer: 'svg', width, height });
    offerFiles(c.place);
  }
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
window.addEventListener('beforeprint', () => { root.dataset.paper = 'yes'; document.querySelectorAll('.topology, .profile').forEach(t => { t.hidden = false; }); document.querySelectorAll('.fold > details').forEach(d => { d.open = true; }); drawAll(); });
window.addEventListener('afterprint', () => { delete root.dataset.paper; if ('panels' in data) { showPath(); showProfile(); } drawAll(); });
let last = window.innerWidth, due = 0;
window.addEventListener('resize', () => {
  if (window.innerWidth === last || root.dataset.paper) return;
  last = window.innerWidth;
  cancelAnimationFrame(due);
  due = requestAnimationFrame(drawAll);
});

