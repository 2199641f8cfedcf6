// What this server says of its peer and of the two legs, read by a reader that trusts nothing.

import { number, object, text } from "./protocol.js";

/** @typedef {{origin: string, token: string | null}} Peer */
/** @typedef {"near" | "line" | "far" | "beyond" | "host" | "unknown"} Limiting */
/**
 * @typedef {object} Direction
 * @property {Limiting} limiting
 * @property {number | null} nearRate
 * @property {number | null} farRate
 * @property {{mean: number, low: number, high: number} | null} ratio
 * @property {number | null} nearIncrease
 * @property {number | null} farIncrease
 * @property {string | null} nearLimit
 * @property {string | null} farLimit
 * @property {number | null} rounds
 * @property {string | null} sentence
 * @property {string | null} equation
 * @property {string | null} unseen
 */
/** @typedef {{download: Direction | null, upload: Direction | null, nearRtt: number | null, farRtt: number | null, moreRounds: boolean}} Verdict */

/** @type {Limiting[]} */
const LIMITING = ["near", "line", "far", "beyond", "host", "unknown"];

/** @param {unknown} value @returns {Peer | null} */
export function readPeer(value) {
  const { peer, token } = object(value);
  const origin = text(peer);
  return origin !== null && URL.canParse(origin) ? { origin: new URL(origin).origin, token: text(token) } : null;
}

/** @param {unknown} value @returns {Direction | null} */
function direction(value) {
  if (typeof value !== "object" || value === null) return null;
  const json = object(value);
  const { mean, low, high } = object(json.ratio);
  const [middle, least, most] = [number(mean), number(low), number(high)];
  return {
    limiting: LIMITING.find((name) => name === json.limiting) ?? "unknown",
    nearRate: number(json.near_rate),
    farRate: number(json.far_rate),
    ratio: middle === null || least === null || most === null ? null : { mean: middle, low: least, high: most },
    nearIncrease: number(json.near_increase),
    farIncrease: number(json.far_increase),
    nearLimit: text(json.near_limit),
    farLimit: text(json.far_limit),
    rounds: number(json.rounds),
    sentence: text(json.sentence),
    equation: text(json.equation),
    unseen: text(json.unseen),
  };
}

/** @param {unknown} value @returns {Verdict | null} */
export function readVerdict(value) {
  if (typeof value !== "object" || value === null) return null;
  const json = object(value);
  return {
    download: direction(json.download),
    upload: direction(json.upload),
    nearRtt: number(json.near_rtt),
    farRtt: number(json.far_rtt),
    moreRounds: json.more_rounds === true,
  };
}
