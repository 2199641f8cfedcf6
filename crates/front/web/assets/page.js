// The page's states: before a run, running, finished, failed; and an earlier result that is shown.

import { Charts } from "./charts.js";
import { byId, button, html, replace, svg } from "./dom.js";
import { bytes, date, fill, rateParts } from "./format.js";
import * as history from "./history.js";
import { keepSection } from "./keep.js";
import { HistoryView } from "./historyview.js";
import { LegsView } from "./legsview.js";
import { Families, findNames } from "./families.js";
import { differsTable, familiesTable, figures, findingCard, invalidAlert, queueSection, stepsTable } from "./results.js";
import { Run, stepText } from "./run.js";
import { texts } from "./texts.js";

/** @typedef {import("./history.js").Entry} Entry */
/** @typedef {import("./protocol.js").Result} Result */
/** @typedef {import("./protocol.js").Welcome} Welcome */
/** @typedef {import("./run.js").Measured} Measured */
/** @typedef {import("./run.js").RunProblem} RunProblem */

/** The circumference of the dial's ring, whose radius is 104. */
const RING = 2 * Math.PI * 104;

/** Says a text to screen readers. @param {string} text */
function announce(text) {
  byId("status").textContent = text;
}

/** @param {"ready" | "running" | "finished" | "invalid" | "problem"} state */
function setState(state) {
  document.documentElement.dataset.state = state;
}

/** Moves the focus to a heading, so that a screen reader continues there. @param {HTMLElement} element */
function focusOn(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

/** The ring that shows the progress, with the current rate in it. */
class Dial {
  #ring = svg("circle", { class: "ring", cx: 120, cy: 120, r: 104, "stroke-dasharray": `0 ${RING}` });
  #number = html("span", { class: "number" });
  #unit = html("span", { class: "unit" });
  #what = html("span", { class: "what" }, texts.run.connecting);
  #bar = html("div", { class: "dial", role: "progressbar", "aria-label": texts.run.progress, "aria-valuemin": 0, "aria-valuemax": 100 });

  constructor() {
    this.element = this.#bar;
    this.#bar.append(
      svg("svg", { viewBox: "0 0 240 240", "aria-hidden": "true" }, svg("circle", { class: "track", cx: 120, cy: 120, r: 104 }), this.#ring),
      html("div", { class: "dial-text", "aria-hidden": "true" }, this.#what, this.#number, this.#unit));
  }

  /** @param {number} share */
  progress(share) {
    this.#ring.setAttribute("stroke-dasharray", `${(Math.min(1, share) * RING).toFixed(1)} ${RING}`);
    this.#bar.setAttribute("aria-valuenow", String(Math.round(Math.min(1, share) * 100)));
  }

  /**
   * @param {string} what
   * @param {string} kind
   */
  step(what, kind) {
    this.#what.textContent = what;
    this.#bar.dataset.kind = kind;
    this.rate(null);
  }

  /** @param {number | null} rate */
  rate(rate) {
    const [number, unit] = rate === null ? ["", ""] : rateParts(rate);
    this.#number.textContent = number;
    this.#unit.textContent = unit;
  }
}

/** A run on the page. */
class RunView {
  #dial = new Dial();
  #list = html("ol", { class: "step-list", "aria-label": texts.run.steps });
  #facts = html("p", { class: "note" });
  #heading = html("h2", { class: "unseen" }, texts.run.heading);
  #begun = 0;
  #doneSeconds = 0;
  /** The current rate; the timer shows it. @type {number | null} */
  #rate = null;
  /** @type {Measured | null} */
  #current = null;

  /**
   * @param {{maxBytes: number, thorough: boolean, families: unknown}} options
   * @param {{finished: (run: Run, result: Result, json: unknown) => void, problem: (problem: RunProblem) => void, stopped: () => void}} on
   */
  constructor(options, on) {
    this.run = new Run(options, {
      welcome: (welcome) => this.#welcome(welcome),
      step: (measured) => this.#step(measured),
      sample: (rate) => { this.#rate = rate; },
      steps: () => this.#steps(),
      result: (result, json) => this.#ended(() => on.finished(this.run, result, json)),
      problem: (problem) => this.#ended(() => on.problem(problem)),
    });
    this.#charts = new Charts(this.run.curves, true);
    this.timer = setInterval(() => this.#progress(), 300);
    const stop = button(texts.start.stop, () => {
      this.run.stop();
      this.#ended(on.stopped);
    }, { class: "plain stop" });
    this.element = html("section", { class: "run", "aria-label": texts.run.heading },
      this.#heading,
      html("div", { class: "run-head" }, html("div", { class: "dial-column" }, this.#dial.element, stop), html("div", { class: "step-column" }, this.#list, this.#facts)),
      this.#charts.element);
    this.stop = stop;
  }

  #charts;

  /** @param {() => void} then */
  #ended(then) {
    clearInterval(this.timer);
    then();
  }

  /** @param {Welcome} welcome */
  #welcome(welcome) {
    if (welcome.maxBytes !== null) this.#facts.textContent = fill(texts.run.announced, { bytes: bytes(welcome.maxBytes) });
    this.#steps();
  }

  /** @param {Measured} measured */
  #step(measured) {
    if (this.#current) this.#doneSeconds += this.#current.plan.seconds;
    this.#current = measured;
    this.#begun = performance.now();
    this.#rate = null;
    this.#dial.step(stepText(measured.plan), measured.plan.kind);
    announce(fill(texts.run.started, { step: stepText(measured.plan) }));
    this.#steps();
  }

  #progress() {
    const planned = this.run.steps.reduce((sum, measured) => sum + measured.plan.seconds, 0);
    if (planned === 0 || this.#current === null) return;
    const within = Math.min((performance.now() - this.#begun) / 1000, this.#current.plan.seconds);
    this.#dial.progress((this.#doneSeconds + within) / planned);
    this.#dial.rate(this.#rate);
    this.#charts.update();
  }

  #steps() {
    const items = this.run.steps.map((measured) => {
      const { plan, step, result, experiment } = measured;
      const isCurrent = measured === this.#current && result === null;
      const state = result ? (result.valid ? "done" : "invalid") : isCurrent ? "running" : "planned";
      const figure = result?.rate ? rateParts(result.rate).join(" ") : result ? "✓" : "";
      return html("li", { class: `step ${state} ${plan.kind}`, "aria-current": isCurrent ? "step" : null },
        html("span", { class: "dot", "aria-hidden": "true" }),
        html("span", { class: "step-name" }, stepText(plan), experiment && " ", experiment && html("span", { class: "tag" }, texts.run.experiment),
          html("span", { class: "unseen" }, `, ${texts.run[state]}`)),
        html("span", { class: "step-rate", "aria-hidden": figure === "✓" ? "true" : null }, figure),
        isCurrent && step?.why ? html("small", {}, step.why) : null,
        state === "invalid" && html("small", { class: "bad" }, `${texts.run.invalid}: ${result?.invalidBecause.join("; ")}`));
    });
    replace(this.#list, ...items);
  }
}

/**
 * The result's view.
 * @param {Result} result
 * @param {import("./run.js").Curves | null} curves
 * @param {Measured[]} steps
 * @param {string} title
 * @param {string | null} connection
 */
function resultView(result, curves, steps, title, connection) {
  const heading = html("h2", { class: "result-title" }, title);
  const element = html("div", { class: result.valid ? "result" : "result invalid" },
    result.valid ? null : invalidAlert(result.invalidBecause),
    heading,
    connection && html("p", { class: "note" }, connection),
    figures(result),
    findingCard(result));
  const queue = queueSection(result);
  if (queue) element.append(queue);
  if (curves && curves.samples.length > 1) {
    element.append(html("section", { class: "curves-section" }, html("h2", {}, texts.charts.heading),
      html("p", { class: "note" }, texts.charts.note), new Charts(curves, false).element));
  }
  for (const section of [familiesTable(result), differsTable(result), stepsTable(steps)]) if (section) element.append(section);
  return { element, heading };
}

/** @param {number} seconds */
function retryText(seconds) {
  if (seconds < 120) return fill(texts.problem.retry, { seconds: Math.ceil(seconds) });
  return fill(texts.problem.retryMinutes, { minutes: Math.ceil(seconds / 60) });
}

/** @param {Welcome | null} welcome */
function connectionText(welcome) {
  if (welcome === null || welcome.client === null) return null;
  const tls = welcome.tls ? texts.result.tls : texts.result.plain;
  const line = fill(texts.result.connectionLine, { client: welcome.client, version: welcome.ipVersion ?? "?", tls });
  return `${texts.result.connection}: ${line}. ${welcome.proxied ? texts.result.proxied : ""}`.trim();
}

export class Page {
  #stage = byId("stage");
  #history;
  /** The names of one family each that this server has. */
  names = findNames();

  constructor() {
    this.#history = new HistoryView(byId("history"), (entry) => this.#showEntry(entry));
    // For tests, as `autostart`.
    void LegsView.show(byId("legs")).then((view) => new URLSearchParams(location.search).has("autolegs") && view?.start());
  }

  /** @param {{maxBytes: number, thorough: boolean}} options */
  start(options) {
    if (document.documentElement.dataset.legs === "running") return;
    setState("running");
    announce(texts.run.connecting);
    void this.#families(options);
  }

  /**
   * Measures IPv4 and IPv6 on their own where this server has names for that; then the run begins.
   * @param {{maxBytes: number, thorough: boolean}} options
   */
  async #families(options) {
    const names = await this.names;
    if (names === null) return this.#run({ ...options, families: null });
    const families = new Families(names, options.maxBytes);
    const progress = html("p", { class: "legs-progress" }, texts.run.connecting);
    const bar = html("progress", { "aria-label": texts.run.progress });
    const stop = button(texts.start.stop, () => {
      families.stop();
      this.#stopped();
    }, { class: "plain stop" });
    replace(this.#stage, html("section", { class: "run", "aria-label": texts.families.heading }, progress, bar, html("p", {}, stop)));
    stop.focus({ preventScroll: true });
    scrollTo({ top: 0 });
    const said = await families.measure((which) => {
      progress.textContent = fill(texts.run.started, { step: texts.run.family[which] });
      announce(progress.textContent);
    });
    if (said !== null) this.#run({ ...options, maxBytes: options.maxBytes - families.bytes, families: said });
    return undefined;
  }

  #stopped() {
    setState("ready");
    announce(texts.run.stopped);
    replace(this.#stage);
    byId("start").focus();
  }

  /** @param {{maxBytes: number, thorough: boolean, families: unknown}} options */
  #run(options) {
    const view = new RunView(options, {
      finished: (run, result, json) => this.#finished(run, result, json),
      problem: (problem) => this.#problem(problem),
      stopped: () => this.#stopped(),
    });
    replace(this.#stage, view.element);
    view.stop.focus({ preventScroll: true });
    scrollTo({ top: 0 });
  }

  /**
   * @param {Run} run
   * @param {Result} result
   * @param {unknown} json
   */
  #finished(run, result, json) {
    const stored = history.add(json, result, run.curves);
    const { element, heading } = resultView(result, run.curves, run.steps, texts.result.heading, connectionText(run.welcome));
    replace(this.#stage, element);
    if (run.welcome?.history) {
      element.append(keepSection(run.welcome.run, null, (kept) => {
        if (stored) history.setKept(stored.id, kept);
        this.#history.draw();
      }));
    }
    if (stored === null) element.append(html("p", { class: "note" }, texts.history.full));
    setState(result.valid ? "finished" : "invalid");
    announce(result.valid ? fill(texts.run.finished, { sentence: result.finding?.sentence ?? "" }).trim() : texts.run.finishedInvalid);
    focusOn(heading);
    this.#history.draw();
    document.documentElement.dataset.result = JSON.stringify(json);
  }

  /** @param {RunProblem} problem */
  #problem({ message, retryAfter }) {
    const heading = html("h2", {}, texts.problem.heading);
    replace(this.#stage, html("div", { class: "alert problem" }, heading, html("p", {}, message),
      retryAfter === null ? null : html("p", {}, retryText(retryAfter))));
    setState("problem");
    announce(fill(texts.run.failed, { message }));
    focusOn(heading);
    document.documentElement.dataset.problem = message;
  }

  /** @param {Entry} entry */
  #showEntry(entry) {
    const { element, heading } = resultView(entry.result, entry.curves, [], fill(texts.history.shown, { date: date(entry.at) }), null);
    if (entry.kept) {
      element.append(keepSection(null, entry.kept, (kept) => {
        history.setKept(entry.id, kept);
        this.#history.draw();
      }));
    }
    replace(this.#stage, element);
    setState(entry.result.valid ? "finished" : "invalid");
    focusOn(heading);
    heading.scrollIntoView();
  }
}
