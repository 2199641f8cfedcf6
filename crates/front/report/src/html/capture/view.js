// What is shown: the stream, the direction, the time span; and drawing it.

const $ = (id) => document.getElementById(id);
const capture = JSON.parse($("capture-data").textContent);
const figures = [...document.querySelectorAll("figure[data-graph]")];
const DRAW = {
  sequence: drawSequence,
  throughput: drawThroughput,
  rtt: drawRtt,
  windows: drawWindows,
};

const state = {
  stream: null,
  side: 0,
  stevens: false,
  average: 0.1,
  drag: "zoom",
  home: { from: 0, to: 1 },
  view: { from: 0, to: 1 },
  cursor: null,
  // The event last gone to.
  event: null,
};

const graphs = figures.map((figure) => ({
  figure,
  plot: new Plot(figure.querySelector("canvas")),
  draw: DRAW[figure.dataset.graph],
  hair: figure.querySelector(".hair-line"),
  tip: figure.querySelector(".tip"),
}));

const bins = () => state.bins[state.side];

// The narrowest span: a microsecond, or what numbers that large can tell apart.
const narrowest = () => Math.max(1e-6, Math.abs(state.home.to) * 1e-11);

const setView = (from, to) => {
  const { home } = state;
  const whole = home.to - home.from;
  const width = Math.min(whole, Math.max(narrowest(), to - from));
  // Zooming in never leaves the capture.
  const start = Math.min(Math.max(from, home.from), home.to - width);
  state.view = { from: start, to: start + width };
  schedule();
};

// Zooms by `factor` about a moment.
const zoomAt = (moment, factor) => {
  const { from, to } = state.view;
  const width = Math.min(state.home.to - state.home.from, Math.max(narrowest(), (to - from) * factor));
  const share = (moment - from) / (to - from);
  setView(moment - share * width, moment + (1 - share) * width);
};

const zoom = (factor) => {
  const { from, to } = state.view;
  const inView = state.cursor !== null && state.cursor > from && state.cursor < to;
  zoomAt(inView ? state.cursor : (from + to) / 2, factor);
};

const pan = (share) => {
  const { from, to } = state.view;
  const by = (to - from) * share;
  setView(from + by, to + by);
};

const reset = () => {
  state.cursor = state.event = null;
  setView(state.home.from, state.home.to);
};

// Moves the view to the next (1) or previous (-1) event: from the cursor or the event last
// shown, and otherwise from the edge of the view, which makes it the first or the last one.
const toEvent = (step) => {
  const { marks } = bins();
  const { from, to } = state.view;
  const isEvent = (i) => marks.counts.some((counts, mark) => mark < 9 && counts[i]) || marks.counts[10][i];
  const start = [state.cursor, state.event].find((moment) => moment !== null && moment >= from && moment <= to);
  const half = marks.width / 2;
  let i;
  if (start === undefined) i = step > 0 ? lowerBound(marks.start, from - half) : lowerBound(marks.start, to - half) - 1;
  else {
    i = lowerBound(marks.start, start - half + (step > 0 ? 1e-9 : 0)) - (step > 0 ? 0 : 1);
    if (step > 0 && i < marks.start.length && marks.start[i] + half <= start + 1e-9) i++;
  }
  while (i >= 0 && i < marks.start.length && !isEvent(i)) i += step;
  if (i < 0 || i >= marks.start.length) return say("No further event in this direction.");
  state.event = state.cursor = marks.start[i] + half;
  const width = Math.min(to - from, 200 * marks.width);
  setView(state.cursor - width / 2, state.cursor + width / 2);
  say(describe(state.cursor));
};

const timeText = (from, to) => {
  const places = decimals((to - from) / 1000);
  return `${from.toFixed(places)} s to ${to.toFixed(places)} s (${readable(to - from, DELAYS)})`;
};

const draw = () => {
  const { from, to } = state.view;
  for (const { plot, draw } of graphs) draw(plot, bins(), from, to);
  $("span").textContent = timeText(from, to);
  showCursor();
  laterPackets();
};

let scheduled = 0;
const schedule = () => {
  scheduled ||= requestAnimationFrame(() => {
    scheduled = 0;
    draw();
  });
};

const setAverage = (seconds) => {
  // A window shorter than a bin would show the bins.
  const { data, acks } = bins();
  state.average = Math.max(seconds, data.width);
  state.sent = movingAverage(data, data.bytes, state.average);
  state.goodput = movingAverage(acks, acks.delivered, state.average);
  $("average-text").textContent = `${state.average.toPrecision(2) * 1} s`;
};

// Steps of the slider: 0.025 s and ten to a decade above it.
const averageOf = (step) => 0.025 * 10 ** (step / 10);

const setSide = (side) => {
  state.side = side;
  state.event = null;
  const { ends } = state.stream;
  $("direction").textContent = `${ends[side]} → ${ends[1 - side]}`;
  $("direction").setAttribute("aria-label",
    `Data from ${ends[side]} to ${ends[1 - side]}; press to switch the direction`);
  setAverage(averageOf(Number($("average").value)));
  legend();
  schedule();
};

const setStream = (number) => {
  const stream = capture.streams.find((stream) => stream.number === number);
  if (!stream) return;
  state.stream = stream;
  state.bins = stream.bins.map((text, side) => decodeBins(text, stream.widthNs[side], capture.marks.length));
  state.packets = decodePackets(stream.packets);
  // From the first to the last packet or bin.
  let [first, last] = [Infinity, -Infinity];
  for (const { data, acks } of state.bins) {
    for (const { start, width } of [data, acks]) {
      if (!start.length) continue;
      first = Math.min(first, start[0]);
      last = Math.max(last, start[start.length - 1] + width);
    }
  }
  const { times } = state.packets;
  if (!(last > first)) [first, last] = times.length ? [times[0], times[times.length - 1]] : [0, 1];
  const margin = Math.max((last - first) * 0.01, 1e-5);
  state.home = { from: first - margin, to: last + margin };
  state.view = { ...state.home };
  state.cursor = null;
  $("stream").value = String(number);
  for (const card of document.querySelectorAll(".stream-card")) {
    card.hidden = card.dataset.stream !== String(number);
  }
  markRows();
  setSide(stream.side);
};

// The marks that the direction has, and how many of each.
const legend = () => {
  const list = $("marks");
  list.textContent = "";
  const { marks } = bins();
  const ratio = window.devicePixelRatio || 1;
  capture.marks.forEach((name, mark) => {
    let count = 0;
    for (const one of marks.counts[mark]) count += one;
    if (!count) return;
    const item = document.createElement("li");
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 16 * ratio;
    canvas.setAttribute("aria-hidden", "true");
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    graphs[0].plot.measure();
    glyph(context, graphs[0].plot, mark, 8, 8);
    const bold = document.createElement("b");
    bold.textContent = grouped(count);
    item.append(canvas, bold, ` ${name}`);
    list.append(item);
  });
};
