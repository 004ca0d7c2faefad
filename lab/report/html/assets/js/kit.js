const root = document.documentElement;
const data = JSON.parse(document.getElementById('data').textContent);
root.classList.add('js');

// ---- theme: the custom properties of the style sheet are the only source.
let theme = {};
function readTheme() {
  const css = getComputedStyle(root);
  const get = name => css.getPropertyValue('--' + name).trim();
  theme = { systems: [] };
  for (const name of ['ground', 'raised', 'ink', 'soft', 'line', 'accent', 'shade', 'bad', 'worse', 'better']) theme[name] = get(name);
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

