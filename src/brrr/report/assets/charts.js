(() => {
'use strict';
const L = 92, R = 14, T = 10, B = 42;
let W = 560, H = 270;  // of the chart that is being drawn: its own units are near to pixels
const make = (name, attributes, parent) => {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(node);
  return node;
};
const element = (name, parent, text, className) => {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  if (parent) parent.appendChild(node);
  return node;
};
const colour = i => `var(--c${i % 8})`;

// Numbers with their unit: binary for bytes, decimal for the rest.
const format = (value, unit) => {
  if (unit === '%') return (100 * value).toPrecision(3) + ' %';
  const size = Math.abs(value), step = unit === 'B' ? 1024 : 1000;
  const prefixes = unit === 'B' ? ['', 'Ki', 'Mi', 'Gi', 'Ti'] : ['', 'k', 'M', 'G', 'T', 'P'];
  let power = 0;
  while (size >= step ** (power + 1) && power + 1 < prefixes.length) ++power;
  if (!unit && size < 100000) power = 0;
  const scaled = value / step ** power;
  const text = size !== 0 && size < 1e-3 ? value.toExponential(2).replace(/\.?0*e/, 'e')
      : String(Number(scaled.toPrecision(4)));
  const suffix = prefixes[power] + (unit || '');
  return suffix ? text + ' ' + suffix : text;
};

// 1, 2 or 5 times a power of ten, in `unit`s.
const linearTicks = (low, high, most, unit = 1) => {
  if (unit !== 1) return linearTicks(low / unit, high / unit, most).map(tick => tick * unit);
  const power = 10 ** Math.floor(Math.log10((high - low) / most));
  const step = [1, 2, 5, 10].map(f => f * power).find(s => (high - low) / s <= most);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push(k * step);
  return ticks;
};
const logTicks = (low, high, most) => {
  const decades = Math.log10(high / low), ticks = [];
  if (decades < 0.7) return linearTicks(low, high, most);
  const stride = Math.max(1, Math.ceil(decades / most));
  for (let k = Math.floor(Math.log10(low)); k <= Math.log10(high); ++k) {
    for (const f of decades < 2.5 ? [1, 2, 5] : [1]) {
      const tick = f * 10 ** k;
      if (tick >= low * 0.999 && tick <= high * 1.001 && k % stride === 0) ticks.push(tick);
    }
  }
  return ticks;
};

// An axis: from values to pixels. Values that have no place on it give NaN.
const makeAxis = (values, { log, zero, unit }, from, to) => {
  const usable = values.filter(v => Number.isFinite(v) && (!log || v > 0));
  let low = Math.min(...usable), high = Math.max(...usable);
  if (!usable.length) { low = log ? 1 : 0; high = log ? 10 : 1; }
  if (zero && !log) low = Math.min(0, low);
  if (low === high) { const room = Math.abs(low) / 2 || 1; high += room; low = log ? low / 2 : low - room; }
  const scale = log ? Math.log10 : v => v;
  const room = (scale(high) - scale(low)) * (from > to ? 0.06 : 0);
  const a = scale(low) - (zero && !log && low === 0 ? 0 : room), b = scale(high) + room;
  const place = v => log && v <= 0 ? NaN : from + (scale(v) - a) / (b - a) * (to - from);
  const undo = log ? v => 10 ** v : v => v;
  const binary = unit === 'B' ? 1024 ** Math.floor(Math.log2(Math.max(1, high)) / 10) : 1;
  const ticks = log ? logTicks(undo(a), undo(b), 6) : linearTicks(a, b, from > to ? 6 : 8, binary);
  return { place, ticks, value: p => undo(a + (p - from) / (to - from) * (b - a)) };
};

const path = (points, x, y) => {
  let text = '', pen = 'M';
  for (const [px, py] of points) {
    const u = x.place(px), v = y.place(py);
    if (!Number.isFinite(u) || !Number.isFinite(v)) { pen = 'M'; continue; }
    text += pen + u.toFixed(1) + ' ' + v.toFixed(1);
    pen = 'L';
  }
  return text;
};

const drawSeries = (svg, series, x, y) => {
  const stroke = colour(series.colour), plot = { fill: 'none', 'stroke-linejoin': 'round' };
  const line = extra => make('path', { ...plot, d: path(series.points, x, y), style: `stroke:${stroke}`, ...extra }, svg);
  if (series.style === 'area') {
    const base = H - B;
    for (const [px, py] of series.points) {
      const left = x.place(px - 0.5), right = x.place(px + 0.5), top = y.place(py);
      make('rect', { x: left, y: top, width: Math.max(0.6, right - left + 0.2), height: Math.max(0, base - top),
        style: `fill:${stroke}`, 'fill-opacity': 0.75 }, svg);
    }
    return;
  }
  if (series.style === 'bubbles') {
    for (const [px, py, share] of series.points) {
      make('circle', { cx: x.place(px), cy: y.place(py), r: 3 + 26 * Math.sqrt(share),
        style: `fill:${stroke};stroke:${stroke}`, 'fill-opacity': 0.35 }, svg);
    }
    return;
  }
  if (series.style === 'faint') { line({ 'stroke-opacity': 0.3, 'stroke-width': 1 }); return; }
  line({ 'stroke-width': 2, 'stroke-dasharray': series.style === 'dashed' ? '6 4' : 'none' });
  if (series.style !== 'dots') return;
  for (const [px, py] of series.points) {
    const u = x.place(px), v = y.place(py);
    if (Number.isFinite(u) && Number.isFinite(v))
      make('circle', { cx: u, cy: v, r: 2.6, style: `fill:${stroke}` }, svg);
  }
};

const drawAxes = (svg, chart, x, y) => {
  for (const tick of y.ticks) {
    const v = y.place(tick);
    make('line', { x1: L, x2: W - R, y1: v, y2: v, style: 'stroke:var(--grid)' }, svg);
    make('text', { x: L - 6, y: v + 4, 'text-anchor': 'end' }, svg).textContent = format(tick, chart.y.unit);
  }
  for (const tick of x.ticks) {
    const u = x.place(tick);
    make('line', { x1: u, x2: u, y1: H - B, y2: H - B + 4, style: 'stroke:var(--soft)' }, svg);
    make('text', { x: u, y: H - B + 16, 'text-anchor': 'middle' }, svg).textContent = format(tick, '');
  }
  make('line', { x1: L, x2: W - R, y1: H - B, y2: H - B, style: 'stroke:var(--soft)' }, svg);
  make('text', { x: (L + W - R) / 2, y: H - 6, 'text-anchor': 'middle' }, svg).textContent = chart.x.label;
  make('text', { x: 12, y: (T + H - B) / 2, 'text-anchor': 'middle',
    transform: `rotate(-90 12 ${(T + H - B) / 2})` }, svg).textContent = chart.y.label;
};

const drawMarks = (svg, chart, x) => {
  chart.marks.forEach((mark, i) => {
    const u = x.place(mark.x);
    const group = make('g', {}, svg);
    const few = chart.marks.length < 4;  // many are ticks at the top, with their words as tooltips
    make('line', { x1: u, x2: u, y1: T, y2: few ? H - B : T + 12, style: 'stroke:var(--c7)',
      'stroke-dasharray': few ? '2 3' : 'none', 'stroke-width': few ? 1 : 3 }, group);
    make('title', {}, group).textContent = mark.text + ' (step ' + mark.x + ')';
    if (few) {
      const left = u > (W + L) / 2;
      make('text', { x: u + (left ? -5 : 5), y: T + 10 + 15 * i, 'text-anchor': left ? 'end' : 'start' }, group)
          .textContent = mark.text;
    }
  });
};

// The point of each series that is nearest to the pointer: along x for lines, in the plane for bubbles.
const nearest = (series, u, v, x, y) => {
  let best = null, distance = Infinity;
  for (const point of series.points) {
    const dx = x.place(point[0]) - u, dy = series.style === 'bubbles' ? y.place(point[1]) - v : 0;
    if (dx * dx + dy * dy < distance) { distance = dx * dx + dy * dy; best = point; }
  }
  return best && { point: best, distance };
};

const showTip = (card, svg, tip, cross, chart, visible, x, y, event) => {
  const box = svg.getBoundingClientRect(), W = svg.viewBox.baseVal.width, H = svg.viewBox.baseVal.height;
  const u = (event.clientX - box.left) / box.width * W, v = (event.clientY - box.top) / box.height * H;
  if (u < L || u > W - R || v < T || v > H - B) { tip.style.display = 'none'; cross.setAttribute('opacity', 0); return; }
  tip.replaceChildren();
  const found = visible.map(series => ({ series, near: nearest(series, u, v, x, y) })).filter(f => f.near);
  const bubbles = found.filter(f => f.series.style === 'bubbles').sort((a, b) => a.near.distance - b.near.distance);
  const lines = bubbles.length ? bubbles.slice(0, 1) : found;
  if (!lines.length) return;
  const at = lines.reduce((a, b) => a.near.distance <= b.near.distance ? a : b).near.point[0];
  element('div', tip, chart.x.label + ' ' + format(at, ''), 'soft');
  for (const { series, near } of lines) {
    if (!bubbles.length && near.distance > 400) continue;
    const row = element('div', tip);
    element('b', row, '\u25CF ').style.color = colour(series.colour);
    element('span', row, (near.point[3] || series.name) + ': ' + format(near.point[1], chart.y.unit));
  }
  cross.setAttribute('opacity', 0.5);
  cross.setAttribute('x1', x.place(at));
  cross.setAttribute('x2', x.place(at));
  tip.style.display = 'block';
  const host = card.getBoundingClientRect(), px = event.clientX - host.left;
  tip.style.left = (px > host.width / 2 ? px - tip.offsetWidth - 14 : px + 14) + 'px';
  tip.style.top = (event.clientY - host.top + 12) + 'px';
};

const show = (chart, parent) => {
  const card = element('section', parent, undefined, 'card chart' + (chart.wide ? ' wide' : ''));
  const head = element('header', card), tools = document.createElement('span');
  element('h3', head, chart.title);
  head.appendChild(tools);
  const holder = element('div', card), legend = element('div', card, undefined, 'legend');
  const tip = element('div', card, undefined, 'tip');
  const off = new Set();
  const draw = () => {
    holder.replaceChildren();
    const visible = chart.series.filter(s => !off.has(s));
    const all = i => visible.flatMap(s => s.points.map(p => p[i]));
    [W, H] = chart.wide ? [1130, 360] : [560, 270];
    const x = makeAxis(all(0), chart.x, L, W - R);
    const y = makeAxis(all(1), chart.y, H - B, T);
    const svg = make('svg', { viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': chart.title }, holder);
    drawAxes(svg, chart, x, y);
    drawMarks(svg, chart, x);
    for (const series of visible) drawSeries(svg, series, x, y);
    const cross = make('line', { y1: T, y2: H - B, opacity: 0, style: 'stroke:var(--soft)' }, svg);
    svg.addEventListener('pointermove', e => showTip(card, svg, tip, cross, chart, visible, x, y, e));
    svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; cross.setAttribute('opacity', 0); });
  };
  for (const axis of ['x', 'y']) {
    const button = element('button', tools, 'log ' + axis);
    button.setAttribute('aria-pressed', chart[axis].log);
    button.addEventListener('click', () => {
      chart[axis].log = !chart[axis].log;
      button.setAttribute('aria-pressed', chart[axis].log);
      draw();
    });
  }
  for (const series of chart.series) {
    const entry = element('span', legend);
    const key = element('i', entry);
    key.style.borderTopColor = colour(series.colour);
    if (series.style === 'dashed') key.style.borderTopStyle = 'dashed';
    if (series.style === 'dots') key.style.borderTopStyle = 'dotted';
    if (series.style === 'faint') key.style.opacity = 0.35;
    entry.appendChild(document.createTextNode(series.name));
    entry.addEventListener('click', () => {
      if (off.has(series)) off.delete(series); else off.add(series);
      entry.classList.toggle('off', off.has(series));
      draw();
    });
  }
  draw();
};

const parent = document.getElementById('drawn');
for (const chart of JSON.parse(document.getElementById('charts').textContent)) show(chart, parent);
})();
