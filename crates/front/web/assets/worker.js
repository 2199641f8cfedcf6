// The worker of a run: the control connection, the steps that the server asks for, and what this
// browser knows of their validity.

import { canReceive, receive } from "./datagrams.js";
import { Flows, pause } from "./flows.js";
import { Health } from "./health.js";
import { VERSION, readMessage } from "./protocol.js";

/** @typedef {import("./protocol.js").Command} Command */
/** @typedef {import("./protocol.js").Failure} Failure */
/** @typedef {import("./protocol.js").ProbeCommand} ProbeCommand */
/** @typedef {import("./protocol.js").ProbeReport} ProbeReport */
/** @typedef {import("./protocol.js").Report} Report */
/** @typedef {import("./protocol.js").Reply} Reply */
/** @typedef {import("./protocol.js").Step} Step */
/** @typedef {import("./protocol.js").StartCommand} StartCommand */

const RECEIVED_EVERY_MS = 200;
/** A flow that the server does not close is closed this long after the step's end. */
const CLOSE_GRACE_MS = 5000;
const PROBE_TIMEOUT_MS = 10_000;
/** Replies in one message, which is then far below the protocol's 64 KiB. */
const MAX_REPLIES = 500;
/** What a clock of 0.1 ms, as it is without cross-origin isolation, shows as zero. */
const MIN_RTT_MS = 0.05;

/** @param {Report} report */
function post(report) {
  self.postMessage(report);
}

/** One run. */
class Run {
  #flows = new Flows();
  #health = new Health();
  #hidden;
  #wasHidden = false;
  #ended = false;
  /** How often the idle probe worker was late: the load of this machine. @type {number | null} */
  #delayed = null;
  #welcomed = false;
  #run = "";
  #step = -1;
  /** Told of the first sample of a step. */
  #begun = () => {};
  /** @type {Worker | null} */
  #prober = null;
  /** @type {Promise<void>} */
  #probing = Promise.resolve();

  /** @param {StartCommand} command */
  constructor(command) {
    this.command = command;
    this.#hidden = command.hidden;
    this.control = new WebSocket(this.#socketUrl("api/run"));
    this.control.onopen = () =>
      this.#say({
        type: "hello",
        version: VERSION,
        platform: command.platform,
        max_bytes: command.maxBytes,
        thorough: command.thorough,
        transports: ["http", "websocket", ...(canReceive() ? ["webtransport"] : [])],
        purpose: command.purpose,
        families: command.families,
      });
    this.control.onmessage = (event) => this.#heard(event.data);
    this.control.onclose = () => this.#fail(this.#welcomed ? "lost" : "connect");
  }

  /** @param {string} path */
  #url(path) {
    const url = new URL(path, this.command.base);
    if (this.command.token !== null) url.searchParams.set("token", this.command.token);
    return url.href;
  }

  /** The same, for a WebSocket. @param {string} path */
  #socketUrl(path) {
    return this.#url(path).replace(/^http/, "ws");
  }

  /** @param {object} message */
  #say(message) {
    if (this.control.readyState === WebSocket.OPEN) this.control.send(JSON.stringify(message));
  }

  /** @param {unknown} data */
  #heard(data) {
    /** @type {unknown} */
    let json = null;
    try {
      json = typeof data === "string" ? JSON.parse(data) : null;
    } catch {
      // A text that is no JSON is no message.
    }
    const message = readMessage(json);
    if (message === null) return this.#fail("protocol");
    post({ is: "message", message, json: message.type === "result" ? json : null });
    switch (message.type) {
      case "welcome":
        this.#welcomed = true;
        this.#run = message.run;
        this.#probing = this.#probe();
        break;
      case "step":
        void this.#measure(message);
        break;
      case "sample":
        if (message.step === this.#step) this.#begun();
        break;
      case "result":
      case "problem":
        this.end();
        break;
      default:
        break;
    }
    return undefined;
  }

  /** Opens the probe connection, in a worker of its own. @returns {Promise<void>} */
  #probe() {
    const prober = new Worker(new URL("./probes.js", import.meta.url), { type: "module" });
    this.#prober = prober;
    return new Promise((resolve) => {
      // A run without probes is worth more than none.
      setTimeout(resolve, PROBE_TIMEOUT_MS);
      prober.onerror = () => resolve();
      prober.onmessage = (/** @type {MessageEvent<ProbeReport>} */ event) => {
        const report = event.data;
        if (report.is === "replies") {
          this.#delayed = report.delayed ?? this.#delayed;
          this.#replies(report.step, "own", report.replies);
        }
        else resolve();
      };
      this.#tell({ do: "connect", url: this.#socketUrl(`api/run/${this.#run}/probe`) });
    });
  }

  /** @param {ProbeCommand} command */
  #tell(command) {
    this.#prober?.postMessage(command);
  }

  /**
   * @param {number} step
   * @param {"own" | "loaded"} on
   * @param {Reply[]} replies
   */
  #replies(step, on, replies) {
    if (replies.length === 0) return;
    const rounded = replies.slice(0, MAX_REPLIES).map(([sent, rtt]) =>
      [Math.round(sent * 100) / 100, Math.max(MIN_RTT_MS, Math.round(rtt * 1000) / 1000)]);
    this.#say({ type: "probes", step, on, replies: rounded });
    post({ is: "probes", step, on, replies });
  }

  /** @param {Step} step */
  async #measure(step) {
    if (step.step <= this.#step) return this.#fail("protocol");
    this.#step = step.step;
    await this.#probing;
    this.#wasHidden = this.#hidden;
    const flows = new Flows();
    this.#flows = flows;
    /** @type {Promise<void>} */
    const begun = new Promise((resolve) => { this.#begun = resolve; });
    try {
      const urls = Array.from({ length: step.flows }, (_, flow) => this.#url(`api/run/${this.#run}/flow/${step.step}/${flow}`));
      const options = { upload: step.kind === "upload", transport: step.transport, maxBytes: this.command.maxBytes };
      await flows.open(urls, options, (ms) => this.#health.handled(ms), begun);
    } catch {
      return this.#fail("flow");
    }
    if (this.#ended) return flows.close();
    const start = performance.now();
    this.#health.start();
    this.#delayed = null;
    this.#tell({ do: "measure", step: step.step });
    post({ is: "began", step: step.step });
    const told = setInterval(() => this.#received(step, start), RECEIVED_EVERY_MS);
    if (step.kind === "idle") await pause(step.seconds * 1000);
    else if (step.kind === "loss") await this.#receive(step);
    else await Promise.race([flows.closed(), pause(step.longest * 1000 + CLOSE_GRACE_MS)]);
    clearInterval(told);
    flows.close();
    this.#tell({ do: "rest" });
    // The last replies of the other worker come before the report.
    await pause(20);
    this.#received(step, start);
    const { busy, longestStallMs } = this.#health.stop(this.#delayed);
    this.#say({
      type: "page",
      step: step.step,
      hidden: this.#wasHidden,
      busy: busy === null ? null : Math.round(busy * 1000) / 1000,
      machine_busy: this.#delayed === null ? null : Math.round(this.#delayed * 1000) / 1000,
      longest_stall_ms: longestStallMs,
    });
    return undefined;
  }

  /** Says which datagrams of a step arrived. @param {Step} step */
  async #receive(step) {
    const url = new URL(this.#url(`api/run/${this.#run}/datagrams`));
    url.protocol = "https:";
    url.port = String(step.datagrams?.port ?? "");
    const received = step.datagrams && await receive(url.href, step.datagrams, step.seconds);
    this.#say({ type: "datagrams", step: step.step, received });
  }

  /**
   * @param {Step} step
   * @param {number} start
   */
  #received(step, start) {
    if (step.kind === "download") {
      const t = Math.round(performance.now() - start) / 1000;
      this.#say({ type: "received", step: step.step, t, bytes: this.#flows.received() });
    }
    this.#replies(step.step, "loaded", this.#flows.takeReplies());
  }

  /** @param {boolean} hidden */
  visibility(hidden) {
    this.#hidden = hidden;
    if (hidden) this.#wasHidden = true;
  }

  /** @param {Failure} failure */
  #fail(failure) {
    if (this.#ended) return;
    post({ is: "failed", failure });
    this.end();
  }

  /** Closes everything. */
  end() {
    this.#ended = true;
    this.#flows.close();
    this.#prober?.terminate();
    this.control.close();
  }
}

/** @type {Run | null} */
let run = null;

self.onmessage = (/** @type {MessageEvent<Command>} */ event) => {
  const command = event.data;
  if (command.do === "start") run = new Run(command);
  if (command.do === "visibility") run?.visibility(command.hidden);
  if (command.do === "stop") run?.end();
};
