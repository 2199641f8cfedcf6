// The history in this browser: the last results, as the server sent them, with their curves.

import { readKept } from "./keep.js";
import { readResult } from "./protocol.js";
import { mainRate } from "./results.js";

/** @typedef {import("./protocol.js").Result} Result */
/** @typedef {import("./run.js").Curves} Curves */

/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} at The time of the result, ISO 8601.
 * @property {unknown} json The server's message.
 * @property {Result} result The same, read.
 * @property {Curves | null} curves
 * @property {Kept | null} kept Where the server keeps it.
 */
/** @typedef {{id: string, secret: string}} Kept */

export const MAX_ENTRIES = 50;
const KEY = "longhaul.history.1";
/** Length of a result's JSON, above which it is not stored. */
const MAX_JSON = 100_000;
const MAX_POINTS = 10_000;

/** @param {unknown} value @returns {value is Record<string, unknown>} */
function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Rows of numbers, or nulls behind the first column, of one length.
 * @param {unknown} value
 * @param {number} columns
 * @returns {value is (number | null)[][]}
 */
function isTable(value, columns) {
  return Array.isArray(value) && value.length <= MAX_POINTS && value.every((row) =>
    Array.isArray(row) && row.length === columns && typeof row[0] === "number"
    && row.every((cell) => cell === null || (typeof cell === "number" && Number.isFinite(cell))));
}

/** @param {unknown} value @returns {Curves | null} */
function readCurves(value) {
  if (!isObject(value) || !isTable(value.samples, 5) || !isTable(value.probes, 3)) return null;
  if (!Array.isArray(value.steps) || value.steps.length > 64) return null;
  /** @type {Curves["steps"]} */
  const steps = [];
  for (const step of value.steps) {
    if (!isObject(step)) return null;
    const { kind, flows, from, to } = step;
    if ((kind !== "idle" && kind !== "download" && kind !== "upload" && kind !== "loss") || typeof flows !== "number"
      || typeof from !== "number" || typeof to !== "number") return null;
    steps.push({ kind, flows, note: typeof step.note === "string" ? step.note : null, from, to });
  }
  return {
    steps,
    samples: /** @type {Curves["samples"]} */ (value.samples),
    probes: /** @type {Curves["probes"]} */ (value.probes),
  };
}

/** @param {Curves} curves @returns {Curves} */
function rounded({ steps, samples, probes }) {
  const to = (/** @type {number} */ value, /** @type {number} */ digits) => Math.round(value * 10 ** digits) / 10 ** digits;
  return {
    steps: steps.map((step) => ({ ...step, from: to(step.from, 2), to: to(step.to, 2) })),
    samples: samples.map(([t, rate, rtt, cwnd, more]) =>
      [to(t, 2), rate === null ? null : Math.round(rate), rtt === null ? null : to(rtt, 2), cwnd === null ? null : Math.round(cwnd), more]),
    probes: probes.map(([t, rtt, loaded]) => [to(t, 2), to(rtt, 2), loaded]),
  };
}

/** The stored results, newest first. @returns {Entry[]} */
export function load() {
  try {
    /** @type {unknown} */
    const stored = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    if (!Array.isArray(stored)) return [];
    return stored.slice(0, MAX_ENTRIES).flatMap((entry) => {
      if (!isObject(entry) || typeof entry.id !== "string" || typeof entry.at !== "string") return [];
      const result = readResult(entry.json);
      if (result === null) return [];
      return [{ id: entry.id, at: entry.at, json: entry.json, result, curves: readCurves(entry.curves), kept: readKept(entry.kept) }];
    });
  } catch {
    // Storage may be disabled, or hold something else.
    return [];
  }
}

/**
 * Stores results; when the storage is full, without the curves of the older ones.
 * @param {Entry[]} entries
 * @returns {boolean} True if they were stored.
 */
function store(entries) {
  const plain = entries.slice(0, MAX_ENTRIES).map(({ id, at, json, curves, kept }) => ({ id, at, json, curves, kept }));
  for (const withCurves of [MAX_ENTRIES, 10, 1, 0]) {
    try {
      localStorage.setItem(KEY, JSON.stringify(plain.map((entry, at) => (at < withCurves ? entry : { ...entry, curves: null }))));
      return true;
    } catch {
      // Tried again with fewer curves.
    }
  }
  return false;
}

/**
 * Adds a result.
 * @param {unknown} json
 * @param {Result} result
 * @param {Curves} curves
 * @returns {Entry | null} `null` if it could not be stored.
 */
export function add(json, result, curves) {
  if (JSON.stringify(json).length > MAX_JSON) return null;
  const id = Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
  const entry = { id, at: new Date().toISOString(), json, result, curves: rounded(curves), kept: null };
  return store([entry, ...load()]) ? entry : null;
}

/**
 * Remembers where the server keeps a result.
 * @param {string} id
 * @param {Kept | null} kept
 */
export function setKept(id, kept) {
  store(load().map((entry) => (entry.id === id ? { ...entry, kept } : entry)));
}

/** @param {string} id */
export function remove(id) {
  store(load().filter((entry) => entry.id !== id));
}

export function removeAll() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing is stored where storage is disabled.
  }
}

/** @param {Entry[]} entries */
export function toJson(entries) {
  return JSON.stringify(entries.map(({ at, json, curves }) => ({ at, result: json, curves })), null, 1);
}

/** A cell of a CSV file (RFC 4180) that no spreadsheet takes for a formula. @param {unknown} value */
function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return `"${safe.replaceAll('"', '""')}"`;
}

/** @param {Entry[]} entries */
export function toCsv(entries) {
  const names = ["time", "valid", "download_bps", "download_one_flow_bps", "upload_bps", "upload_one_flow_bps", "rtt_idle_ms",
    "rtt_download_ms", "rtt_upload_ms", "jitter_ms", "loss", "loss_from", "bufferbloat", "rpm", "limit", "probability", "sentence"];
  const rows = entries.map(({ at, result }) => [at, result.valid, mainRate(result.download), result.download?.oneFlow,
    mainRate(result.upload), result.upload?.oneFlow, result.rttIdle, result.rttDownload, result.rttUpload, result.jitter,
    result.loss?.ratio, result.loss?.from, result.bufferbloat?.grade, result.rpm, result.finding?.limit,
    result.finding?.probability, result.finding?.sentence]);
  return [names, ...rows].map((row) => row.map(cell).join(",")).join("\r\n").concat("\r\n");
}
