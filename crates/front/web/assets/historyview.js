// The list of earlier results: show, compare two, export, delete.

import { button, html, replace, table } from "./dom.js";
import { change, date, fill, millis, percent, rate } from "./format.js";
import * as history from "./history.js";
import { confirmRemoval, forget } from "./keep.js";
import { limitText, mainRate } from "./results.js";
import { texts } from "./texts.js";

/** @typedef {import("./history.js").Entry} Entry */
/** @typedef {import("./protocol.js").Interval} Interval */
/** @typedef {import("./protocol.js").Result} Result */

/**
 * Offers a text as a file.
 * @param {string} name
 * @param {string} type
 * @param {string} content
 */
function download(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], { type }));
  html("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** @type {{name: string, interval: string, value: (result: Result) => number | null, text: (value: number) => string}[]} */
const FIGURES = [
  { name: texts.history.download, interval: "download_several", value: (result) => result.download?.severalFlows ?? null, text: rate },
  { name: texts.history.downloadOne, interval: "download_one", value: (result) => result.download?.oneFlow ?? null, text: rate },
  { name: texts.history.upload, interval: "upload_several", value: (result) => result.upload?.severalFlows ?? null, text: rate },
  { name: texts.history.uploadOne, interval: "upload_one", value: (result) => result.upload?.oneFlow ?? null, text: rate },
  { name: texts.history.rtt, interval: "rtt_idle", value: (result) => result.rttIdle, text: millis },
  { name: texts.result.rttDownload, interval: "rtt_download", value: (result) => result.rttDownload, text: millis },
  { name: texts.result.rttUpload, interval: "rtt_upload", value: (result) => result.rttUpload, text: millis },
  { name: texts.history.jitter, interval: "jitter", value: (result) => result.jitter, text: millis },
  { name: texts.history.loss, interval: "loss", value: (result) => result.loss?.ratio ?? null, text: percent },
  { name: texts.history.rpm, interval: "", value: (result) => result.rpm, text: (value) => `${Math.round(value)} ${texts.result.rpmUnit}` },
];

/**
 * @param {{interval: string}} figure
 * @param {Result} result
 * @returns {Interval | null}
 */
function interval(figure, result) {
  if (figure.interval !== "loss") return result.intervals[figure.interval] ?? null;
  const { low = null, high = null } = result.loss ?? {};
  return low === null || high === null ? null : [low, high];
}

/**
 * The change between two figures, if it is beyond both intervals: the rule of the server's /compare.
 * @param {number | null} before
 * @param {number | null} after
 * @param {Interval | null} first
 * @param {Interval | null} second
 */
function difference(before, after, first, second) {
  if (before === null || after === null) return "–";
  if (!first || !second || (first[0] <= second[1] && second[0] <= first[1])) return texts.history.cannotTell;
  return before === 0 ? texts.history.higher : change(after / before - 1);
}

/**
 * @param {Entry} earlier
 * @param {Entry} later
 */
function comparison(earlier, later) {
  const rows = FIGURES.flatMap((figure) => {
    const { name, value, text } = figure;
    const [before, after] = [value(earlier.result), value(later.result)];
    if (before === null && after === null) return [];
    const [first, second] = [interval(figure, earlier.result), interval(figure, later.result)];
    const shown = (/** @type {number | null} */ one, /** @type {Interval | null} */ range) =>
      one === null ? "–" : range === null ? text(one) : fill(texts.history.interval, { value: text(one), low: text(range[0]), high: text(range[1]) });
    return [[name, shown(before, first), shown(after, second), difference(before, after, first, second)]];
  });
  const limit = (/** @type {Entry} */ { result }) => (result.finding?.limit ? limitText(result.finding.limit) : texts.result.unknown);
  const grade = (/** @type {Entry} */ { result }) => result.bufferbloat?.grade ?? "–";
  rows.push([texts.result.grade, grade(earlier), grade(later), ""], [texts.finding.heading, limit(earlier), limit(later), ""]);
  const { compare, compareCaption, figure, before, after, change: changeName } = texts.history;
  return html("div", { class: "comparison" }, html("h3", { tabindex: -1 }, compare),
    table(compareCaption, [figure, `${before}: ${date(earlier.at)}`, `${after}: ${date(later.at)}`, changeName], rows, { class: "numbers" }),
    html("p", { class: "note" }, texts.history.compareNote));
}

export class HistoryView {
  #element;
  #show;
  /** @type {string[]} */
  #selected = [];

  /**
   * @param {HTMLElement} element
   * @param {(entry: Entry) => void} show
   */
  constructor(element, show) {
    this.#element = element;
    this.#show = show;
    this.draw();
  }

  /** Draws the list from the storage. */
  draw() {
    const entries = history.load();
    this.#selected = this.#selected.filter((id) => entries.some((entry) => entry.id === id));
    const { heading, note, empty } = texts.history;
    if (entries.length === 0) {
      replace(this.#element, html("h2", { id: "history-heading" }, heading), html("p", { class: "note" }, empty));
      return;
    }
    const result = html("div", { class: "comparison-area" });
    replace(this.#element,
      html("h2", { id: "history-heading" }, heading),
      html("p", { class: "note" }, fill(note, { count: history.MAX_ENTRIES })),
      this.#table(entries, result),
      this.#actions(entries),
      result);
    this.#compare(entries, result);
  }

  /**
   * @param {Entry[]} entries
   * @param {HTMLElement} area
   */
  #table(entries, area) {
    const { caption, date: dateName, download: down, upload, rtt, loaded, grade, limit } = texts.history;
    const rows = entries.map((entry) => {
      const { result } = entry;
      const loadedRtt = Math.max(result.rttDownload ?? 0, result.rttUpload ?? 0);
      const [downRate, upRate] = [mainRate(result.download), mainRate(result.upload)];
      return [
        this.#choice(entry, entries, area),
        downRate === null ? "–" : rate(downRate),
        upRate === null ? "–" : rate(upRate),
        result.rttIdle === null ? "–" : millis(result.rttIdle),
        loadedRtt === 0 ? "–" : millis(loadedRtt),
        result.bufferbloat?.grade ?? "–",
        result.valid ? (result.finding?.limit ? limitText(result.finding.limit) : "–") : html("strong", { class: "bad" }, texts.history.invalid),
        this.#rowActions(entry),
      ];
    });
    return table(caption, [dateName, down, upload, rtt, loaded, grade, limit, ""], rows, { class: "stacked history-table" });
  }

  /** @param {Entry} entry */
  #rowActions(entry) {
    const values = { date: date(entry.at) };
    return html("span", { class: "row-actions" },
      button(texts.history.open, () => this.#show(entry), { class: "quiet", "aria-label": fill(texts.history.openLabel, values) }),
      button(texts.history.remove, () => void this.#remove([entry]), { class: "quiet", "aria-label": fill(texts.history.removeLabel, values) }));
  }

  /**
   * Deletes results here and, where they are kept, on the server. One that the server does not
   * delete stays, with its secret.
   * @param {Entry[]} entries
   */
  async #remove(entries) {
    const kept = entries.filter((entry) => entry.kept);
    if (!confirmRemoval(kept.length)) return;
    for (const entry of entries) {
      if (!entry.kept || (await forget(entry.kept))) history.remove(entry.id);
      else alert(texts.keep.failed);
    }
    this.draw();
    this.#element.querySelector("button")?.focus();
  }

  /**
   * The box that selects a result; a third selection replaces the first.
   * @param {Entry} entry
   * @param {Entry[]} entries
   * @param {HTMLElement} area
   */
  #choice(entry, entries, area) {
    const box = html("input", { type: "checkbox", "aria-label": fill(texts.history.select, { date: date(entry.at) }), "data-id": entry.id });
    box.checked = this.#selected.includes(entry.id);
    box.addEventListener("change", () => {
      this.#selected = this.#selected.filter((id) => id !== entry.id);
      if (box.checked) this.#selected.push(entry.id);
      while (this.#selected.length > 2) {
        const dropped = this.#selected.shift();
        const other = this.#element.querySelector(`input[data-id="${dropped}"]`);
        if (other instanceof HTMLInputElement) other.checked = false;
      }
      this.#compare(entries, area);
    });
    return html("label", {}, box, html("time", { datetime: entry.at }, date(entry.at)));
  }

  /**
   * @param {Entry[]} entries
   * @param {HTMLElement} area
   */
  #compare(entries, area) {
    const [later, earlier] = entries.filter((entry) => this.#selected.includes(entry.id));
    replace(area, earlier && later ? comparison(earlier, later) : null);
  }

  /** @param {Entry[]} entries */
  #actions(entries) {
    const { csv, json, removeAll, removeAllConfirm } = texts.history;
    return html("p", { class: "actions" },
      button(csv, () => download("longhaul-history.csv", "text/csv", history.toCsv(entries)), { class: "plain" }),
      button(json, () => download("longhaul-history.json", "application/json", history.toJson(entries)), { class: "plain" }),
      button(removeAll, () => {
        if (confirm(removeAllConfirm)) void this.#remove(entries).then(() => { if (history.load().length === 0) history.removeAll(); });
      }, { class: "plain" }));
  }
}
