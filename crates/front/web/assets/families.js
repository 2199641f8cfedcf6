// IPv4 beside IPv6: short runs over each family, by names of this server that have one alone.

import { number, object, text } from "./protocol.js";
import { Run } from "./run.js";

/** @typedef {import("./protocol.js").FamilyFailure} FamilyFailure */
/** @typedef {{name: string, hasAddress: boolean | null}} Name */
/** @typedef {{ipv4: Name | null, ipv6: Name | null}} Names */
/** @typedef {"ipv4" | "ipv6"} Which */
/**
 * What the page says of a family, as the server reads it.
 * @typedef {{rtt: number | null, rtt_interval: [number, number] | null, rate: number | null, interval: [number, number] | null, failed: FamilyFailure | null, after_ms: number | null}} Said
 */

/** @type {Which[]} */
export const BOTH = ["ipv4", "ipv6"];
/** Of the bytes of a run each family may take this share. */
export const SHARE = 0.05;
/** An attempt without an answer within this is silent: SYNs are sent at 0, 1 and 3 s. */
const REACH_MS = 4000;
/** A run over one family, with the time to open its connections. */
const MAX_RUN_MS = 20_000;

/** @type {Said} */
const NOTHING = { rtt: null, rtt_interval: null, rate: null, interval: null, failed: null, after_ms: null };

/** The token in this page's address. */
function token() {
  return new URLSearchParams(location.search).get("token");
}

/** @param {unknown} value @returns {Name | null} */
function readName(value) {
  const { name, has_address: hasAddress } = object(value);
  const known = text(name);
  return known === null || !/^[\w.-]+$/.test(known) ? null : { name: known, hasAddress: typeof hasAddress === "boolean" ? hasAddress : null };
}

/** The names of one family each that this server has; `null` without any. @returns {Promise<Names | null>} */
export async function findNames() {
  try {
    const url = new URL("api/families", document.baseURI);
    const given = token();
    if (given !== null) url.searchParams.set("token", given);
    const response = await fetch(url, { cache: "no-store" });
    if (!response.ok) return null;
    const json = object(await response.json());
    const names = { ipv4: readName(json.ipv4), ipv6: readName(json.ipv6) };
    return names.ipv4 === null && names.ipv6 === null ? null : names;
  } catch {
    return null;
  }
}

/**
 * Where this server is by a name: with the scheme, port and path of this page.
 * @param {string} name
 */
function baseOf(name) {
  const url = new URL(".", document.baseURI);
  url.hostname = name;
  return url.href;
}

/**
 * Asks the server at a base by which family it is reached.
 * @param {string} base
 * @returns {Promise<{version: number | null, failed: FamilyFailure | null, afterMs: number}>}
 */
async function reach(base) {
  const began = performance.now();
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), REACH_MS);
  try {
    const response = await fetch(new URL("api/run/reach", base), { cache: "no-store", credentials: "omit", signal: abort.signal });
    const version = response.ok ? number(object(await response.json()).ip_version) : null;
    return { version, failed: version === null ? "incomplete" : null, afterMs: performance.now() - began };
  } catch {
    return { version: null, failed: abort.signal.aborted ? "silent" : "failed", afterMs: performance.now() - began };
  } finally {
    clearTimeout(timer);
  }
}

/** Measures both families, one after the other. */
export class Families {
  #names;
  #maxBytes;
  /** @type {Run | null} */
  #run = null;
  #stopped = false;
  /** The bytes that were transferred. */
  bytes = 0;

  /**
   * @param {Names} names
   * @param {number} maxBytes Of a whole run.
   */
  constructor(names, maxBytes) {
    this.#names = names;
    this.#maxBytes = Math.floor(maxBytes * SHARE);
  }

  /**
   * @param {(which: Which) => void} began
   * @returns {Promise<{ipv4: Said, ipv6: Said} | null>} `null` if it was stopped.
   */
  async measure(began) {
    // A family without a name is this page's own, if it was opened over it.
    const own = BOTH.some((which) => this.#names[which] === null) ? await reach(document.baseURI) : null;
    const places = BOTH.map((which) => this.#place(which, own?.version ?? null));
    const reached = await Promise.all(places.map((base) => (base === null ? null : reach(base))));
    /** @type {{ipv4: Said, ipv6: Said}} */
    const said = { ipv4: NOTHING, ipv6: NOTHING };
    for (const [at, which] of BOTH.entries()) {
      if (this.#stopped) return null;
      said[which] = await this.#family(which, places[at] ?? null, reached[at] ?? null, began);
    }
    return this.#stopped ? null : said;
  }

  /**
   * @param {Which} which
   * @param {number | null} own The family of this page's own connection.
   */
  #place(which, own) {
    const name = this.#names[which];
    if (name !== null) return baseOf(name.name);
    return own === versionOf(which) ? new URL(".", document.baseURI).href : null;
  }

  /**
   * @param {Which} which
   * @param {string | null} base
   * @param {Awaited<ReturnType<typeof reach>> | null} reached
   * @param {(which: Which) => void} began
   * @returns {Promise<Said>}
   */
  async #family(which, base, reached, began) {
    if (base === null || reached === null) return { ...NOTHING, failed: "no-name" };
    const afterMs = Math.round(reached.afterMs);
    if (reached.failed !== null) {
      const isUnknown = this.#names[which]?.hasAddress === false;
      return { ...NOTHING, failed: isUnknown ? "no-address" : reached.failed, after_ms: afterMs };
    }
    if (reached.version !== versionOf(which)) return { ...NOTHING, failed: "other-family" };
    began(which);
    return this.#measured(which, base);
  }

  /**
   * @param {Which} which
   * @param {string} base
   * @returns {Promise<Said>}
   */
  #measured(which, base) {
    const nothing = () => {};
    return new Promise((resolve) => {
      /** @type {Said} */
      const incomplete = { ...NOTHING, failed: "incomplete" };
      const timer = setTimeout(() => ended(incomplete), MAX_RUN_MS);
      const run = new Run({ maxBytes: this.#maxBytes, thorough: false, purpose: "family", base, token: token() }, {
        welcome: nothing,
        step: nothing,
        sample: nothing,
        steps: nothing,
        result: (result) => {
          const isIt = run.welcome?.ipVersion === versionOf(which);
          ended(isIt ? {
            ...NOTHING,
            rtt: result.rttIdle,
            rtt_interval: result.intervals.rtt_idle ?? null,
            rate: result.download?.oneFlow ?? null,
            interval: result.intervals.download_one ?? null,
            failed: result.rttIdle === null ? "incomplete" : null,
          } : { ...NOTHING, failed: "other-family" });
        },
        problem: () => ended(incomplete),
      });
      this.#run = run;
      const ended = (/** @type {Said} */ said) => {
        clearTimeout(timer);
        run.stop();
        this.bytes += run.steps.reduce((sum, { result }) => sum + (result?.bytes ?? 0), 0);
        resolve(said);
      };
    });
  }

  stop() {
    this.#stopped = true;
    this.#run?.stop();
  }
}

/** @param {Which} which */
function versionOf(which) {
  return which === "ipv4" ? 4 : 6;
}
