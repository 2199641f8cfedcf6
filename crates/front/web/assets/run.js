// A run as the page sees it: starts the worker, keeps the curves and the steps' results.

import { texts } from "./texts.js";
import { fill } from "./format.js";

/** @typedef {import("./protocol.js").Command} Command */
/** @typedef {import("./protocol.js").Failure} Failure */
/** @typedef {import("./protocol.js").PlannedStep} PlannedStep */
/** @typedef {import("./protocol.js").Report} Report */
/** @typedef {import("./protocol.js").Result} Result */
/** @typedef {import("./protocol.js").ServerMessage} ServerMessage */
/** @typedef {import("./protocol.js").Step} Step */
/** @typedef {import("./protocol.js").StepResult} StepResult */
/** @typedef {import("./protocol.js").StepKind} StepKind */
/** @typedef {import("./protocol.js").Welcome} Welcome */

/**
 * The curves of a run. Times are in seconds since its first measurement, RTTs in milliseconds.
 * @typedef {object} Curves
 * @property {{kind: StepKind, flows: number, note: string | null, from: number, to: number}[]} steps
 *   `note` is what an experiment changes.
 * @property {[t: number, rate: number | null, rtt: number | null, cwnd: number | null, retransmits: number | null][]} samples
 *   `retransmits` are those since the previous sample.
 * @property {[t: number, rtt: number, loaded: 0 | 1][]} probes
 */

/** @typedef {{plan: PlannedStep, step: Step | null, result: StepResult | null, experiment: boolean}} Measured */
/** @typedef {{message: string, retryAfter: number | null}} RunProblem */

/**
 * What a run reports to the page.
 * @typedef {object} Listener
 * @property {(welcome: Welcome) => void} welcome
 * @property {(measured: Measured) => void} step
 * @property {(rate: number | null) => void} sample
 * @property {() => void} steps The list of steps has changed.
 * @property {(result: Result, json: unknown) => void} result
 * @property {(problem: RunProblem) => void} problem
 */

const MAX_SAMPLES = 4000;
const MAX_PROBES = 8000;

/** @param {number} count */
export function flowsText(count) {
  return count === 1 ? texts.run.oneFlow : fill(texts.run.flows, { count });
}

/** @param {{kind: StepKind, flows: number}} step */
export function stepText(step) {
  if (step.kind === "idle" || step.kind === "loss") return texts.run[step.kind];
  return fill(texts.run[step.kind], { flows: flowsText(step.flows) });
}

/** The visitor's platform, for the commands. */
export function platform() {
  const agent = navigator.userAgent;
  if (/android/i.test(agent)) return "android";
  // An iPad asks for desktop pages as a Mac with a touch screen.
  if (/iphone|ipad|ipod/i.test(agent) || (/macintosh/i.test(agent) && navigator.maxTouchPoints > 1)) return "ios";
  if (/windows/i.test(agent)) return "windows";
  if (/macintosh|mac os x/i.test(agent)) return "macos";
  return /linux|x11/i.test(agent) ? "linux" : "other";
}

export class Run {
  /** @type {Curves} */
  curves = { steps: [], samples: [], probes: [] };
  /** @type {Measured[]} */
  steps = [];
  /** @type {Welcome | null} */
  welcome = null;
  #worker;
  #listener;
  #base;
  #token;
  #origin = 0;
  /** @type {Map<number, {from: number, measured: Measured, retransmits: number}>} */
  #started = new Map();
  #ended = false;
  #visibility = () => this.#tell({ do: "visibility", hidden: document.hidden });

  /**
   * @param {{maxBytes: number, thorough: boolean, purpose?: import("./protocol.js").Purpose, families?: unknown, base?: string, token?: string | null}} options
   *   `base` is where another server is, with its `token`.
   * @param {Listener} listener
   */
  constructor(options, listener) {
    this.#listener = listener;
    this.#base = options.base ?? new URL(".", document.baseURI).href;
    this.#token = options.base === undefined ? new URLSearchParams(location.search).get("token") : (options.token ?? null);
    this.#worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });
    this.#worker.onerror = () => this.#fail({ message: texts.problem.browser, retryAfter: null });
    this.#worker.onmessage = (/** @type {MessageEvent<Report>} */ event) => this.#heard(event.data);
    document.addEventListener("visibilitychange", this.#visibility);
    this.#tell({
      do: "start",
      base: this.#base,
      token: this.#token,
      platform: platform(),
      maxBytes: options.maxBytes,
      thorough: options.thorough,
      purpose: options.purpose ?? "test",
      families: options.families ?? null,
      hidden: document.hidden,
    });
  }

  /** @param {Command} command */
  #tell(command) {
    this.#worker.postMessage(command);
  }

  /** Seconds since the first measurement. */
  #now() {
    return (performance.now() - this.#origin) / 1000;
  }

  /** @param {Report} report */
  #heard(report) {
    if (this.#ended) return;
    if (report.is === "message") this.#message(report.message, report.json);
    if (report.is === "failed") void this.#failed(report.failure);
    if (report.is === "began") this.#began(report.step);
    if (report.is === "probes") {
      const from = this.#started.get(report.step)?.from;
      if (from === undefined || this.curves.probes.length > MAX_PROBES) return;
      const loaded = report.on === "loaded" ? 1 : 0;
      for (const [sent, rtt] of report.replies) this.curves.probes.push([from + sent / 1000, rtt, loaded]);
    }
  }

  /** @param {number} step */
  #began(step) {
    const measured = this.steps.find((other) => other.step?.step === step);
    if (!measured) return;
    if (this.#started.size === 0) this.#origin = performance.now();
    const from = this.#now();
    this.#started.set(step, { from, measured, retransmits: 0 });
    const { kind, flows, seconds } = measured.plan;
    const note = measured.experiment ? (measured.step?.congestion ?? texts.run.experiment) : null;
    this.curves.steps.push({ kind, flows, note, from, to: from + seconds });
    this.#listener.step(measured);
  }

  /**
   * @param {ServerMessage} message
   * @param {unknown} json
   */
  #message(message, json) {
    switch (message.type) {
      case "welcome":
        this.welcome = message;
        this.steps = message.steps.map((plan) => ({ plan, step: null, result: null, experiment: false }));
        this.#listener.welcome(message);
        break;
      case "step":
        this.#take(message);
        this.#listener.steps();
        break;
      case "sample": {
        const started = this.#started.get(message.step);
        if (started === undefined || this.curves.samples.length > MAX_SAMPLES) return;
        const more = message.retransmits === null ? null : Math.max(0, message.retransmits - started.retransmits);
        started.retransmits = message.retransmits ?? started.retransmits;
        const last = this.curves.steps.at(-1);
        // Where the rate has not settled, a step is longer than planned.
        if (last && last.from === started.from) last.to = Math.max(last.to, started.from + message.t);
        this.curves.samples.push([started.from + message.t, message.rate, message.rtt, message.cwnd, more]);
        this.#listener.sample(message.rate);
        break;
      }
      case "step-result": {
        const started = this.#started.get(message.step);
        if (started === undefined) return;
        started.measured.result = message;
        const last = this.curves.steps.at(-1);
        if (last && last.from === started.from) last.to = Math.min(last.to, this.#now());
        this.#listener.steps();
        break;
      }
      case "result":
        this.#end();
        this.#listener.result(message, json);
        break;
      case "problem":
        this.#fail({ message: message.message || texts.problem.lost, retryAfter: message.retryAfter });
        break;
    }
  }

  /**
   * Finds the planned step that the server begins. One that was not planned, an experiment, is
   * inserted before the next planned step.
   * @param {Step} step
   */
  #take(step) {
    // The server leaves out datagrams on a path that carries too few of them.
    const isLeftOut = (/** @type {Measured} */ { plan, step: begun }) => plan.kind === "loss" && begun === null;
    if (step.kind === "upload") this.steps = this.steps.filter((measured) => !isLeftOut(measured));
    const next = this.steps.findIndex((measured) => measured.step === null);
    const planned = this.steps[next];
    if (planned && planned.plan.kind === step.kind && planned.plan.flows === step.flows) {
      planned.step = step;
      planned.plan = step;
      return;
    }
    this.steps.splice(next < 0 ? this.steps.length : next, 0, { plan: step, step, result: null, experiment: true });
  }

  /** @param {Failure} failure */
  async #failed(failure) {
    this.#end();
    const busy = failure === "connect" ? await this.#refusal() : null;
    this.#listener.problem(busy ?? { message: texts.problem[failure], retryAfter: null });
  }

  /**
   * The reason for which the server refuses a run; a browser does not tell it of a WebSocket.
   * @returns {Promise<RunProblem | null>}
   */
  async #refusal() {
    try {
      const url = new URL("api/run", this.#base);
      if (this.#token !== null) url.searchParams.set("token", this.#token);
      const response = await fetch(url, { cache: "no-store" });
      if (response.status !== 429 && response.status !== 503 && response.status !== 401 && response.status !== 403) return null;
      const message = (await response.text()).trim().slice(0, 300) || texts.problem.busy;
      const retryAfter = Number(response.headers.get("Retry-After"));
      return { message, retryAfter: retryAfter > 0 ? retryAfter : null };
    } catch {
      return null;
    }
  }

  /** @param {RunProblem} problem */
  #fail(problem) {
    if (this.#ended) return;
    this.#end();
    this.#listener.problem(problem);
  }

  #end() {
    this.#ended = true;
    document.removeEventListener("visibilitychange", this.#visibility);
    this.#worker.terminate();
  }

  /** Stops the run; nothing is reported any more. */
  stop() {
    this.#tell({ do: "stop" });
    this.#end();
  }
}
