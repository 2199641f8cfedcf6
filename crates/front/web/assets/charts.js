// Curves of rate, RTT, congestion window and retransmits on one time axis, as SVG.

import { html, replace, svg, table } from "./dom.js";
import { bytes, count, fill, millis, rate, seconds } from "./format.js";
import { flowsText, stepText } from "./run.js";
import { texts } from "./texts.js";

/** @typedef {import("./run.js").Curves} Curves */
/** @typedef {Curves["steps"][number]} CurveStep */
/** @typedef {Curves["samples"][number]} CurveSample */

const LEFT = 70;
const RIGHT = 10;
const BAND = 24;
const AXIS = 24;
const TITLE = 26;
/** Between two pictures while a run lasts. */
const DRAW_EVERY_MS = 300;
/** Seconds that the axis has at least. */
const MIN_SPAN = 4;

/**
 * @typedef {object} Panel
 * @property {"rate" | "rtt" | "cwnd" | "retransmits"} name
 * @property {number} height
 * @property {(value: number) => string} text
 * @property {number} index The column of a sample.
 * @property {number} least The range shown at least.
 */

/** @type {Panel[]} */
const PANELS = [
  { name: "rate", height: 150, text: rate, index: 1, least: 1e6 },
  { name: "rtt", height: 110, text: millis, index: 2, least: 5 },
  { name: "cwnd", height: 76, text: bytes, index: 3, least: 20e3 },
  { name: "retransmits", height: 52, text: count, index: 4, least: 4 },
];

/**
 * Ticks at 1, 2 or 5 times a power of ten, from zero to at least the maximum.
 * @param {number} max
 * @param {number} wanted
 */
function ticks(max, wanted) {
  const raw = max / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5].find((factor) => factor * power >= raw) ?? 10) * power;
  const result = [];
  for (let index = 0; index <= Math.ceil(max / step - 1e-9); index += 1) result.push(index * step);
  return result;
}

/** @param {number[]} values */
function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? null;
}

/** @param {Curves} curves */
function end(curves) {
  const last = Math.max(curves.samples.at(-1)?.[0] ?? 0, curves.probes.at(-1)?.[0] ?? 0);
  return Math.max(last, MIN_SPAN);
}

/**
 * The step at a time.
 * @param {Curves} curves
 * @param {number} t
 */
function stepAt(curves, t) {
  return curves.steps.findLast((step) => t >= step.from - 0.05) ?? curves.steps[0];
}

/** @param {CurveStep | undefined} step */
function bandText(step) {
  if (step === undefined) return "";
  if (step.kind === "idle") return texts.charts.stepIdle;
  if (step.kind === "loss") return texts.charts.stepLoss;
  return `${step.kind === "download" ? "↓" : "↑"} ${flowsText(step.flows)}${step.note === null ? "" : `, ${step.note}`}`;
}

export class Charts {
  #curves;
  #svg = svg("svg", { role: "img", class: "curves" });
  #cursor = html("input", { type: "range", min: 0, max: 1000, value: 0, class: "cursor", "aria-label": texts.charts.cursor });
  #readout = html("p", { class: "readout", "aria-hidden": "true" });
  #table = html("details", { class: "values" }, html("summary", {}, texts.charts.table));
  #width = 0;
  #live;
  #pending = false;
  #span = MIN_SPAN;
  #line = svg("line", { class: "cursor-line", visibility: "hidden" });

  /**
   * @param {Curves} curves
   * @param {boolean} live While a run lasts there is no cursor and no table.
   */
  constructor(curves, live) {
    this.#curves = curves;
    this.#live = live;
    this.element = html("div", { class: "charts" }, this.#svg, this.#legend());
    // In the next frame: drawing resizes what is observed.
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.element);
    if (live) return;
    this.element.append(html("div", { class: "cursor-row" }, this.#cursor, this.#readout), this.#table);
    this.#cursor.addEventListener("input", () => this.#point((Number(this.#cursor.value) / 1000) * this.#span));
    this.#svg.addEventListener("pointermove", (event) => {
      const box = this.#svg.getBoundingClientRect();
      const t = ((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT)) * this.#span;
      if (t >= 0 && t <= this.#span) {
        this.#cursor.value = String((t / this.#span) * 1000);
        this.#point(t);
      }
    });
    this.#table.addEventListener("toggle", () => {
      if (this.#table.open && !this.#table.querySelector("table")) this.#table.append(html("div", { class: "scroll" }, valueTable(curves)));
    });
  }

  #legend() {
    const mark = (/** @type {string} */ name) => svg("svg", { class: `mark ${name}`, width: 22, height: 12, "aria-hidden": "true" },
      name === "line" ? svg("path", { d: "M1 6H21", class: "curve rtt" }) : null,
      name === "probe" ? svg("circle", { cx: 11, cy: 6, r: 2.6, class: "probe" }) : null,
      name === "loaded" ? svg("path", { d: "M8 3h6v6h-6z", class: "loaded" }) : null);
    const { legendTcp, legendProbe, legendLoaded } = texts.charts;
    return html("ul", { class: "legend" },
      html("li", {}, mark("line"), `${texts.charts.rtt}: ${legendTcp}`),
      html("li", {}, mark("probe"), legendProbe),
      html("li", {}, mark("loaded"), legendLoaded));
  }

  /** Draws soon, at most once a frame. */
  update() {
    if (this.#pending) return;
    this.#pending = true;
    // Few pictures a second are enough, and leave the processor to the transfer.
    setTimeout(() => requestAnimationFrame(() => {
      this.#pending = false;
      this.#width = 0;
      this.draw();
    }), DRAW_EVERY_MS);
  }

  /** Draws if the width or, through `update`, the data have changed. */
  draw() {
    const width = Math.round(this.element.clientWidth);
    if (width === 0 || width === this.#width) return;
    this.#width = width;
    const curves = this.#curves;
    this.#span = end(curves) * (this.#live ? 1.04 : 1);
    const x = (/** @type {number} */ t) => LEFT + (t / this.#span) * (width - LEFT - RIGHT);
    const height = BAND + PANELS.reduce((sum, panel) => sum + TITLE + panel.height, 0) + AXIS;
    /** @type {Node[]} */
    const parts = [...this.#bands(x, height - AXIS)];
    let top = BAND;
    for (const panel of PANELS) {
      top += TITLE;
      parts.push(this.#panel(panel, x, top, width));
      top += panel.height;
    }
    for (const t of ticks(this.#span, width < 600 ? 4 : 8)) {
      if (t > this.#span) continue;
      parts.push(svg("text", { x: x(t), y: height - 6, class: "tick-x" }, `${t} ${texts.charts.seconds}`));
    }
    this.#line.setAttribute("y1", String(BAND));
    this.#line.setAttribute("y2", String(height - AXIS));
    this.#svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.#svg.setAttribute("height", String(height));
    this.#svg.setAttribute("aria-label", this.#live ? texts.charts.heading : summary(curves));
    replace(this.#svg, ...parts, this.#line);
  }

  /**
   * @param {(t: number) => number} x
   * @param {number} bottom
   */
  #bands(x, bottom) {
    return this.#curves.steps.flatMap((step, index) => {
      const from = x(step.from);
      const to = x(Math.min(step.to, this.#span));
      if (to - from < 1) return [];
      const kind = step.kind;
      const room = to - from;
      const words = [bandText(step), bandText({ ...step, note: null }), bandText(step).replace(/(?<=\d) .*$/, "")];
      const text = words.find((word) => word.length * 7 < room - 6) ?? "";
      return [
        svg("rect", { x: from, y: 0, width: room, height: bottom, class: `band ${index % 2 ? "odd" : "even"}` }),
        svg("rect", { x: from, y: 0, width: room, height: 3, class: `strip ${kind}` }),
        svg("text", { x: from + 5, y: 17, class: "band-name" }, text),
      ];
    });
  }

  /**
   * @param {Panel} panel
   * @param {(t: number) => number} x
   * @param {number} top
   * @param {number} width
   */
  #panel(panel, x, top, width) {
    const { samples, probes } = this.#curves;
    const isRtt = panel.name === "rtt";
    let max = panel.least;
    for (const sample of samples) max = Math.max(max, sample[panel.index] ?? 0);
    if (isRtt) for (const probe of probes) max = Math.max(max, probe[1]);
    const marks = ticks(max, panel.height > 100 ? 3 : 2);
    const ceiling = marks.at(-1) ?? max;
    const bottom = top + panel.height;
    const y = (/** @type {number} */ value) => bottom - (value / ceiling) * (panel.height - 4);
    const group = svg("g", { class: `panel ${panel.name}` });
    for (const mark of marks) {
      const at = Math.round(y(mark)) + 0.5;
      group.append(
        svg("path", { d: `M${LEFT} ${at}H${width - RIGHT}`, class: mark === 0 ? "base" : "grid" }),
        svg("text", { x: LEFT - 8, y: at + 4, class: "tick-y" }, mark === 0 ? "0" : short(panel, mark)),
      );
    }
    group.append(svg("text", { x: LEFT, y: top - 8, class: "panel-name" }, texts.charts[panel.name]));
    if (panel.name === "retransmits") group.append(...this.#bars(x, y, bottom));
    else group.append(...this.#lines(panel, x, y, bottom));
    if (isRtt) group.append(dots(probes, x, y));
    return group;
  }

  /**
   * @param {Panel} panel
   * @param {(t: number) => number} x
   * @param {(value: number) => number} y
   * @param {number} bottom
   */
  #lines(panel, x, y, bottom) {
    const { steps, samples } = this.#curves;
    return steps.flatMap((step, index) => {
      const until = steps[index + 1]?.from ?? Infinity;
      const points = samples.filter((sample) => sample[0] >= step.from && sample[0] < until);
      const known = points.filter((sample) => sample[panel.index] !== null);
      if (known.length < 2) return [];
      const path = known.map((sample, at) => `${at ? "L" : "M"}${x(sample[0]).toFixed(1)} ${y(sample[panel.index] ?? 0).toFixed(1)}`).join("");
      const line = svg("path", { d: path, class: `curve ${panel.name} ${step.kind}` });
      if (panel.name !== "rate") return [line];
      const [first, last] = [x(known[0]?.[0] ?? 0), x(known.at(-1)?.[0] ?? 0)];
      return [svg("path", { d: `${path}L${last.toFixed(1)} ${bottom}L${first.toFixed(1)} ${bottom}Z`, class: `area ${step.kind}` }), line];
    });
  }

  /**
   * @param {(t: number) => number} x
   * @param {(value: number) => number} y
   * @param {number} bottom
   */
  #bars(x, y, bottom) {
    const path = this.#curves.samples.flatMap(([t, , , , more]) => (more ? [`M${x(t).toFixed(1)} ${bottom}V${y(more).toFixed(1)}`] : []));
    return path.length ? [svg("path", { d: path.join(""), class: "bar" })] : [];
  }

  /** Shows the values at a time. @param {number} t */
  #point(t) {
    const x = LEFT + (t / this.#span) * (this.#width - LEFT - RIGHT);
    for (const name of ["x1", "x2"]) this.#line.setAttribute(name, String(x));
    this.#line.setAttribute("visibility", "visible");
    const { samples, probes } = this.#curves;
    const near = (/** @type {number} */ at) => Math.abs(at - t) < 0.25;
    /** @type {CurveSample | null} */
    let nearest = null;
    for (const sample of samples) {
      if (near(sample[0]) && (nearest === null || Math.abs(sample[0] - t) < Math.abs(nearest[0] - t))) nearest = sample;
    }
    const values = [];
    if (nearest) {
      const [, rateAt, rttAt, cwndAt, more] = nearest;
      if (rateAt !== null) values.push(rate(rateAt));
      if (rttAt !== null) values.push(`${texts.charts.rtt} ${millis(rttAt)}`);
      if (cwndAt !== null) values.push(`${texts.charts.cwnd} ${bytes(cwndAt)}`);
      if (more !== null) values.push(fill(texts.charts.readoutRetransmits, { count: more }));
    }
    const probe = median(probes.filter((other) => other[2] === 0 && near(other[0])).map((other) => other[1]));
    if (probe !== null) values.push(`${texts.charts.tableProbe} ${millis(probe)}`);
    const step = stepAt(this.#curves, t);
    const text = fill(texts.charts.readout, { time: seconds(t), step: step ? stepText(step) : "", values: values.join(" · ") });
    this.#readout.textContent = text;
    this.#cursor.setAttribute("aria-valuetext", text);
  }
}

/**
 * The label of a tick.
 * @param {Panel} panel
 * @param {number} value
 */
function short(panel, value) {
  return panel.text(value).replace(/\.0+(?=\D|$)/, "").replace(/(\.\d)0(?=\D|$)/, "$1").replace("bit/s", "b/s");
}

/**
 * Probes as circles, those within the loaded connections as squares: two paths in all.
 * @param {Curves["probes"]} probes
 * @param {(t: number) => number} x
 * @param {(value: number) => number} y
 */
function dots(probes, x, y) {
  let [own, loaded] = ["", ""];
  for (const [t, rtt, within] of probes) {
    const [px, py] = [x(t).toFixed(1), y(rtt).toFixed(1)];
    if (within) loaded += `M${px} ${py}m-1.7 -1.7h3.4v3.4h-3.4z`;
    else own += `M${px} ${py}m-1.6 0a1.6 1.6 0 1 0 3.2 0a1.6 1.6 0 1 0 -3.2 0`;
  }
  return svg("g", {}, svg("path", { d: loaded, class: "loaded" }), svg("path", { d: own, class: "probe" }));
}

/** @param {Curves} curves */
function summary(curves) {
  const values = (/** @type {number} */ index) => curves.samples.map((sample) => sample[index] ?? 0);
  return fill(texts.charts.summary, {
    seconds: seconds(end(curves)),
    rate: rate(Math.max(0, ...values(1))),
    rtt: millis(Math.max(0, ...values(2), ...curves.probes.map((probe) => probe[1]))),
    retransmits: count(values(4).reduce((sum, value) => sum + value, 0)),
  });
}

/** A row for each second. @param {Curves} curves */
function valueTable(curves) {
  const rows = [];
  for (let second = 0; second < end(curves); second += 1) {
    const within = (/** @type {[number, ...unknown[]]} */ row) => row[0] >= second && row[0] < second + 1;
    const samples = curves.samples.filter(within);
    const column = (/** @type {number} */ index) => samples.flatMap((sample) => sample[index] ?? []);
    const probe = median(curves.probes.filter((row) => within(row) && row[2] === 0).map((row) => row[1]));
    const rates = column(1);
    const rtt = median(column(2));
    const cwnd = column(3).at(-1) ?? null;
    const step = stepAt(curves, second + 0.5);
    rows.push([
      `${second} ${texts.charts.seconds}`,
      step ? stepText(step) : "",
      rates.length ? rate(rates.reduce((sum, value) => sum + value, 0) / rates.length) : "–",
      rtt === null ? "–" : millis(rtt),
      probe === null ? "–" : millis(probe),
      cwnd === null ? "–" : bytes(cwnd),
      samples.length ? count(column(4).reduce((sum, value) => sum + value, 0)) : "–",
    ]);
  }
  const { tableCaption, tableTime, tableStep, rate: rateName, rtt, tableProbe, cwnd, retransmits } = texts.charts;
  return table(tableCaption, [tableTime, tableStep, rateName, rtt, tableProbe, cwnd, retransmits], rows, { class: "numbers" });
}
