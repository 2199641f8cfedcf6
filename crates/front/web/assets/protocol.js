// The messages of `longhaul.web.1` (docs/design/web.md), as types and as a reader that trusts
// nothing: a field of the wrong type is null, a text is cut, a list is bounded.

import { withoutOptions } from "./format.js";

export const VERSION = 1;
const MAX_TEXT = 4000;
const MAX_LIST = 64;
const MAX_FLOWS = 32;
const MAX_STEP_SECONDS = 60;
const MAX_DATAGRAMS = 16_384;

/** @typedef {"idle" | "download" | "upload" | "loss"} StepKind */
/** @typedef {{kind: StepKind, flows: number, seconds: number, longest: number}} PlannedStep Its end is between `seconds` and `longest`. */
/** @typedef {PlannedStep & {type: "step", step: number, transport: "http" | "websocket", congestion: string | null, why: string | null, datagrams: Datagrams | null}} Step */
/** @typedef {{port: number, certificate: string, count: number}} Datagrams The certificate is its SHA-256, in hexadecimal. */
/** @typedef {{type: "welcome", run: string, client: string | null, ipVersion: number | null, proxied: boolean, tls: boolean, history: boolean, maxBytes: number | null, seconds: number | null, steps: PlannedStep[]}} Welcome */
/** @typedef {{type: "sample", step: number, t: number, rate: number | null, rtt: number | null, cwnd: number | null, retransmits: number | null}} Sample */
/** @typedef {{limit: string, probability: number}} Alternative */
/** @typedef {{limit: string | null, sentence: string | null, equation: string | null, probability: number | null, posterior: Alternative[], experiments: string[]}} Finding */
/** @typedef {{type: "step-result", step: number, rate: number | null, bytes: number | null, flows: number | null, valid: boolean, invalidBecause: string[], rttIdle: number | null, rttLoaded: number | null, congestion: string | null, sentence: string | null, limit: string | null}} StepResult */
/** @typedef {{oneFlow: number | null, severalFlows: number | null, flows: number | null}} Direction */
/** @typedef {{where: string | null, platform: string | null, line: string | null, why: string | null, gain: Gain | null}} Remedy */
/** @typedef {[low: number, high: number]} Interval */
/** @typedef {{factor: number, where: string | null, low: number | null, high: number | null, basis: string | null}} Gain */
/** @typedef {{method: string, rate: number | null, rule: string | null}} Differing */
/** @typedef {"no-name" | "no-address" | "silent" | "failed" | "other-family" | "incomplete"} FamilyFailure Why a family has no figures. */
/** @typedef {{rtt: number | null, rttInterval: Interval | null, rate: number | null, interval: Interval | null, failed: FamilyFailure | null}} Family */
/** @typedef {{ipv4: Family, ipv6: Family, sentence: string | null}} Families */
/** @typedef {{ttl: number, rttIdle: number | null, rttLoaded: number | null}} Hop */
/** @typedef {{sentence: string | null, place: string | null, lastRouter: number | null, hops: Hop[], visitor: Interval | null, paused: number | null, threshold: number | null}} Evidence The RTTs of the visitor are without load and under it. */
/** @typedef {{download: Evidence | null, upload: Evidence | null, notProbed: string | null}} Queue */
/** @typedef {{streaming: string | null, gaming: string | null, calls: string | null}} Verdicts */
/**
 * @typedef {object} Result
 * @property {"result"} type
 * @property {Direction | null} download
 * @property {Direction | null} upload
 * @property {number | null} rttIdle
 * @property {number | null} jitter
 * @property {number | null} rttDownload
 * @property {number | null} rttUpload
 * @property {{grade: string | null, increase: number | null} | null} bufferbloat
 * @property {number | null} rpm
 * @property {string | null} rpmMethod
 * @property {{ratio: number, low: number | null, high: number | null, from: string | null, sent: number | null} | null} loss
 * @property {string | null} ecn
 * @property {Families | null} families
 * @property {Verdicts | null} verdicts
 * @property {Finding | null} finding
 * @property {Queue | null} queue
 * @property {Remedy[]} remedies
 * @property {Remedy[]} uploadRemedies
 * @property {Record<string, Interval | null>} intervals
 * @property {Gain | null} gain
 * @property {Differing[]} differs
 * @property {boolean} valid
 * @property {string[]} invalidBecause
 */
/** @typedef {{type: "problem", message: string, retryAfter: number | null}} Problem */
/** @typedef {Welcome | Step | Sample | StepResult | Result | Problem} ServerMessage */

/** @typedef {Record<string, unknown>} Json */

/** @param {unknown} value @returns {value is Json} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param {unknown} value @returns {Json} */
export function object(value) {
  return isObject(value) ? value : {};
}

/** A number of at least zero. @param {unknown} value */
export function number(value) {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 && value < 1e18 ? value : null;
}

/** @param {unknown} value */
export function text(value) {
  return typeof value === "string" && value !== "" ? value.slice(0, MAX_TEXT) : null;
}

/** A finding in words. @param {unknown} value */
function sentence(value) {
  const words = text(value);
  return words === null ? null : withoutOptions(words);
}

/** @param {unknown} value @returns {unknown[]} */
function list(value) {
  return Array.isArray(value) ? value.slice(0, MAX_LIST) : [];
}

/** @param {unknown} value */
function textList(value) {
  return list(value).flatMap((item) => text(item) ?? []);
}

/** @param {Json} json @returns {PlannedStep | null} */
function planned(json) {
  const { kind } = json;
  if (kind !== "idle" && kind !== "download" && kind !== "upload" && kind !== "loss") return null;
  const isTransfer = kind === "download" || kind === "upload";
  const flows = number(json.flows) ?? (isTransfer ? 1 : 0);
  const seconds = number(json.seconds);
  if (seconds === null || seconds > MAX_STEP_SECONDS || flows > MAX_FLOWS || !Number.isInteger(flows)) return null;
  if (isTransfer && flows === 0) return null;
  const longest = Math.min(MAX_STEP_SECONDS, Math.max(seconds, number(json.longest) ?? seconds));
  return { kind, flows, seconds, longest };
}

/** @param {unknown} value @returns {Datagrams | null} */
function datagrams(value) {
  if (!isObject(value)) return null;
  const port = number(value.port);
  const count = number(value.count);
  const certificate = text(value.certificate);
  if (port === null || port > 65535 || count === null || count > MAX_DATAGRAMS || !Number.isInteger(count)) return null;
  return certificate === null || !/^[0-9a-f]{64}$/.test(certificate) ? null : { port, certificate, count };
}

/** @param {unknown} value @returns {Direction | null} */
function direction(value) {
  if (!isObject(value)) return null;
  return { oneFlow: number(value.one_flow), severalFlows: number(value.several_flows), flows: number(value.flows) };
}

/** @param {unknown} value @returns {Finding | null} */
function finding(value) {
  if (!isObject(value)) return null;
  const posterior = list(value.posterior).flatMap((item) => {
    const { limit, probability } = object(item);
    const [name, share] = [text(limit), number(probability)];
    return name === null || share === null ? [] : [{ limit: name, probability: Math.min(share, 1) }];
  });
  const probability = number(value.probability);
  return {
    limit: text(value.limit),
    sentence: sentence(value.sentence),
    equation: text(value.equation),
    probability: probability === null ? null : Math.min(probability, 1),
    posterior,
    experiments: textList(value.experiments),
  };
}

/** @param {unknown} ends @returns {Interval | null} */
function interval(ends) {
  const [low, high] = list(ends).map(number);
  return low == null || high == null || low > high ? null : [low, high];
}

/** Confidence intervals by figure. @param {unknown} value */
function intervals(value) {
  /** @type {Record<string, Interval | null>} */
  const found = {};
  for (const [name, ends] of Object.entries(object(value)).slice(0, MAX_LIST)) found[name] = interval(ends);
  return found;
}

/** @param {unknown} value @returns {Evidence | null} */
function evidence(value) {
  if (!isObject(value)) return null;
  const [idle, loaded] = list(value.visitor).map(number);
  const arrivals = object(value.arrivals);
  return {
    sentence: text(value.sentence),
    place: text(value.place),
    lastRouter: number(value.last_router),
    hops: list(value.hops).flatMap((item) => {
      const hop = object(item);
      const ttl = number(hop.ttl);
      return ttl === null ? [] : [{ ttl, rttIdle: number(hop.rtt_idle), rttLoaded: number(hop.rtt_loaded) }];
    }),
    visitor: idle == null || loaded == null ? null : [idle, loaded],
    paused: number(arrivals.paused),
    threshold: number(arrivals.threshold),
  };
}

/** @type {FamilyFailure[]} */
const FAILURES = ["no-name", "no-address", "silent", "failed", "other-family", "incomplete"];

/** @param {unknown} value @returns {Family} */
function family(value) {
  const json = object(value);
  return {
    rtt: number(json.rtt),
    rttInterval: interval(json.rtt_interval),
    rate: number(json.rate),
    interval: interval(json.interval),
    failed: FAILURES.find((name) => name === json.failed) ?? null,
  };
}

/** @param {unknown} json @returns {Gain | null} */
function gain(json) {
  const { factor, where, low, high, basis } = object(json);
  const known = number(factor);
  return known === null ? null : { factor: known, where: text(where), low: number(low), high: number(high), basis: text(basis) };
}

/** @param {Json} json @returns {Remedy} */
function remedy(json) {
  return { where: text(json.where), platform: text(json.platform), line: text(json.line), why: text(json.why), gain: gain(json.gain) };
}

/** @param {Json} json @returns {Result} */
function result(json) {
  const bufferbloat = isObject(json.bufferbloat) ? json.bufferbloat : null;
  const loss = object(json.loss);
  const ratio = number(loss.ratio);
  const verdicts = isObject(json.verdicts) ? json.verdicts : null;
  return {
    type: "result",
    download: direction(json.download),
    upload: direction(json.upload),
    rttIdle: number(json.rtt_idle),
    jitter: number(json.jitter),
    rttDownload: number(json.rtt_download),
    rttUpload: number(json.rtt_upload),
    bufferbloat: bufferbloat && { grade: text(bufferbloat.grade), increase: number(bufferbloat.increase) },
    rpm: number(json.rpm),
    rpmMethod: text(json.rpm_method),
    loss: ratio === null ? null : { ratio, low: number(loss.low), high: number(loss.high), from: text(loss.from), sent: number(loss.sent) },
    ecn: text(object(json.ecn).sentence),
    families: isObject(json.families)
      ? { ipv4: family(json.families.ipv4), ipv6: family(json.families.ipv6), sentence: text(json.families.sentence) }
      : null,
    verdicts: verdicts && {
      streaming: text(verdicts.streaming),
      gaming: text(verdicts.gaming),
      calls: text(verdicts.calls),
    },
    finding: finding(json.finding),
    queue: isObject(json.queue)
      ? { download: evidence(json.queue.download), upload: evidence(json.queue.upload), notProbed: text(json.queue.not_probed) }
      : null,
    remedies: list(json.remedies).filter(isObject).map(remedy),
    uploadRemedies: list(json.upload_remedies).filter(isObject).map(remedy),
    gain: gain(json.gain),
    intervals: intervals(json.intervals),
    differs: list(json.differs).filter(isObject).flatMap((row) => {
      const method = text(row.method);
      return method === null ? [] : [{ method, rate: number(row.rate), rule: text(row.rule) }];
    }),
    valid: json.valid !== false,
    invalidBecause: textList(json.invalid_because),
  };
}

/**
 * Reads a stored result, as the server sent it.
 * @param {unknown} value
 * @returns {Result | null}
 */
export function readResult(value) {
  return isObject(value) && value.type === "result" ? result(value) : null;
}

/**
 * Reads a message of the server; `null` if it is none that this page understands.
 * @param {unknown} json
 * @returns {ServerMessage | null}
 */
export function readMessage(json) {
  if (!isObject(json)) return null;
  const step = number(json.step);
  switch (json.type) {
    case "welcome": {
      const run = text(json.run);
      if (run === null || !/^[0-9a-f]{32}$/.test(run)) return null;
      return {
        type: "welcome",
        run,
        client: text(json.client),
        ipVersion: number(json.ip_version),
        proxied: json.proxied === true,
        tls: json.tls === true,
        history: json.history === true,
        maxBytes: number(json.max_bytes),
        seconds: number(json.seconds),
        steps: list(json.steps).flatMap((item) => planned(object(item)) ?? []),
      };
    }
    case "step": {
      const plan = planned(json);
      if (plan === null || step === null) return null;
      const transport = json.transport === "http" ? "http" : "websocket";
      return { type: "step", step, ...plan, transport, congestion: text(json.congestion), why: text(json.why), datagrams: datagrams(json.datagrams) };
    }
    case "sample": {
      const t = number(json.t);
      if (step === null || t === null) return null;
      return {
        type: "sample", step, t,
        rate: number(json.rate),
        rtt: number(json.rtt),
        cwnd: number(json.cwnd),
        retransmits: number(json.retransmits),
      };
    }
    case "step-result": {
      if (step === null) return null;
      const found = finding(json.finding);
      return {
        type: "step-result", step,
        rate: number(json.rate),
        bytes: number(json.bytes),
        flows: number(json.flows),
        valid: json.valid !== false,
        invalidBecause: textList(json.invalid_because),
        rttIdle: number(json.rtt_idle),
        rttLoaded: number(json.rtt_loaded),
        congestion: text(json.congestion),
        sentence: sentence(json.sentence) ?? found?.sentence ?? null,
        limit: found?.limit ?? null,
      };
    }
    case "result":
      return result(json);
    case "problem":
      return { type: "problem", message: text(json.message) ?? "", retryAfter: number(json.retry_after) };
    default:
      return null;
  }
}

// Between the page and its worker.

/** @typedef {"test" | "leg" | "family"} Purpose What a run is for: `leg` is a round of one of two legs, `family` IPv4 or IPv6 alone. */
/** @typedef {{do: "start", base: string, token: string | null, platform: string, maxBytes: number, thorough: boolean, purpose: Purpose, families: unknown, hidden: boolean}} StartCommand */
/** @typedef {StartCommand | {do: "visibility", hidden: boolean} | {do: "stop"}} Command */
/** @typedef {"connect" | "lost" | "flow" | "protocol"} Failure */
/** @typedef {[sent: number, rtt: number]} Reply Both in milliseconds, `sent` since the step's start. */
/**
 * @typedef {{is: "message", message: ServerMessage, json: unknown}
 *   | {is: "began", step: number}
 *   | {is: "probes", step: number, on: "own" | "loaded", replies: Reply[]}
 *   | {is: "failed", failure: Failure}} Report
 */

/** @typedef {{do: "connect", url: string} | {do: "measure", step: number} | {do: "rest"}} ProbeCommand */
/** @typedef {{is: "open"} | {is: "closed"} | {is: "replies", step: number, replies: Reply[], delayed: number | null}} ProbeReport */
