// Wi-Fi, line or far away? Measures the way to this server and to its peer in turns; this server
// then says which leg limits.

import { readPeer, readVerdict } from "./legsprotocol.js";
import { Run } from "./run.js";
import { texts } from "./texts.js";

/** @typedef {import("./legsprotocol.js").Peer} Peer */
/** @typedef {import("./legsprotocol.js").Verdict} Verdict */
/** @typedef {import("./run.js").Measured} Measured */
/** @typedef {"near" | "far"} LegName */

/** Rounds before the first verdict, and those that are added while it is open. */
const ROUNDS = 3;
const MORE_ROUNDS = 2;
export const MAX_ROUNDS = 5;

/** This page's query without a fragment, with its token. @param {string} path */
function own(path) {
  const url = new URL(path, document.baseURI);
  const token = new URLSearchParams(location.search).get("token");
  if (token !== null) url.searchParams.set("token", token);
  return url;
}

/** The peer of this server, if it has one. @returns {Promise<Peer | null>} */
export async function findPeer() {
  try {
    const response = await fetch(own("api/peer"), { cache: "no-store" });
    return response.ok ? readPeer(await response.json()) : null;
  } catch {
    return null;
  }
}

/** The steps of a run as this server wants them. @param {Measured[]} steps */
function legOf(steps) {
  /** @param {"download" | "upload"} kind */
  const transfer = (kind, single = false) => {
    const result = steps.find(({ plan }) => plan.kind === kind && (plan.flows === 1) === single)?.result;
    if (!result) return null;
    return { rate: result.rate || null, rtt_loaded: result.rttLoaded, limit: result.limit, valid: result.valid };
  };
  const idle = steps.find((measured) => measured.plan.kind === "idle")?.result;
  return { rtt_idle: idle?.rttIdle ?? null, single: transfer("download", true), download: transfer("download"), upload: transfer("upload") };
}

/** @typedef {ReturnType<typeof legOf>} Leg */

/**
 * What is reported while it measures.
 * @typedef {object} Listener
 * @property {(round: number, rounds: number, leg: LegName) => void} began
 * @property {(verdict: Verdict, json: unknown) => void} verdict
 * @property {(message: string) => void} problem
 */

export class Legs {
  #peer;
  #maxBytes;
  #listener;
  /** @type {{near: Leg, far: Leg}[]} */
  #rounds = [];
  /** @type {Run | null} */
  #run = null;
  #stopped = false;

  /**
   * @param {Peer} peer
   * @param {number} maxBytes Of both legs together.
   * @param {Listener} listener
   */
  constructor(peer, maxBytes, listener) {
    this.#peer = peer;
    this.#maxBytes = Math.floor(maxBytes / (2 * MAX_ROUNDS));
    this.#listener = listener;
    void this.#measure();
  }

  async #measure() {
    try {
      for (let rounds = ROUNDS; ; rounds += MORE_ROUNDS) {
        while (this.#rounds.length < rounds) {
          const near = await this.#leg("near", rounds);
          const far = await this.#leg("far", rounds);
          this.#rounds.push({ near, far });
        }
        const response = await fetch(own("api/legs"), { method: "POST", body: JSON.stringify({ rounds: this.#rounds }) });
        /** @type {unknown} */
        const json = response.ok ? await response.json() : null;
        const verdict = readVerdict(json);
        if (verdict === null) throw new Error(texts.problem.protocol);
        if (this.#stopped) return;
        if (!verdict.moreRounds || rounds + MORE_ROUNDS > MAX_ROUNDS) return this.#listener.verdict(verdict, json);
      }
    } catch (error) {
      if (!this.#stopped) this.#listener.problem(error instanceof Error ? error.message : texts.problem.lost);
    }
    return undefined;
  }

  /**
   * @param {LegName} name
   * @param {number} rounds
   * @returns {Promise<Leg>}
   */
  #leg(name, rounds) {
    if (this.#stopped) return Promise.reject(new Error("stopped"));
    this.#listener.began(this.#rounds.length + 1, rounds, name);
    const server = name === "near" ? {} : { base: `${this.#peer.origin}/`, token: this.#peer.token };
    return new Promise((resolve, reject) => {
      const nothing = () => {};
      const run = new Run({ maxBytes: this.#maxBytes, thorough: false, purpose: "leg", ...server }, {
        welcome: nothing,
        step: nothing,
        sample: nothing,
        steps: nothing,
        result: () => resolve(legOf(run.steps)),
        problem: ({ message }) => reject(new Error(name === "near" ? message : `${texts.legs.farProblem} ${message}`)),
      });
      this.#run = run;
    });
  }

  stop() {
    this.#stopped = true;
    this.#run?.stop();
  }
}
