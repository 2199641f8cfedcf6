// The result: figures, verdicts, the finding, what others would have shown.

import { button, html, svg, table } from "./dom.js";
import { change, factor, fill, millis, millisParts, percent, rate, rateParts } from "./format.js";
import { flowsText, stepText } from "./run.js";
import { texts } from "./texts.js";

/** @typedef {import("./dom.js").Child} Child */
/** @typedef {import("./protocol.js").Direction} Direction */
/** @typedef {import("./protocol.js").Finding} Finding */
/** @typedef {import("./protocol.js").Remedy} Remedy */
/** @typedef {import("./protocol.js").Result} Result */
/** @typedef {import("./run.js").Measured} Measured */

/** Limits with which the line carries all that it can (`Limit::is_saturated`). */
const SATURATED = ["path-rate", "aqm", "shared-bottleneck"];

/**
 * A text of a table of texts, or the name itself, which may be one that this page does not know.
 * @param {Record<string, string>} table
 * @param {string} name
 */
function named(table, name) {
  return Object.hasOwn(table, name) ? (table[name] ?? name) : name;
}

/** @param {string} limit */
export function limitText(limit) {
  return named(texts.limits, limit);
}

/**
 * The rate that stands for a direction: the higher one.
 * @param {Direction | null} direction
 */
export function mainRate(direction) {
  const rates = [direction?.oneFlow, direction?.severalFlows].flatMap((rate) => rate ?? []);
  return rates.length ? Math.max(...rates) : null;
}

/** The flows that had it. @param {Direction | null} direction */
function mainFlows(direction) {
  return direction?.severalFlows && direction.severalFlows === mainRate(direction) ? (direction.flows ?? 0) : 1;
}

/** @param {Direction} direction */
function ratioText({ oneFlow, severalFlows, flows }) {
  if (!oneFlow || !severalFlows) return null;
  const ratio = oneFlow / severalFlows;
  const values = { ratio: percent(ratio), count: flowsText(flows ?? 0) };
  if (ratio > 1.1) return fill(texts.result.ratioLess, { ratio: percent(severalFlows / oneFlow) });
  if (ratio >= 0.9) return fill(texts.result.ratioEqual, { ...values, ratio: percent(Math.min(ratio, 1)) });
  return fill(ratio >= 0.6 ? texts.result.ratioPart : texts.result.ratioSmall, values);
}

/**
 * A bar of one rate beside the other.
 * @param {string} name
 * @param {number} value
 * @param {number} max
 */
function rateBar(name, value, max) {
  const share = max > 0 ? (value / max) * 100 : 0;
  return html("div", { class: "rate-row" },
    html("dt", {}, name),
    html("dd", {}, rate(value)),
    svg("svg", { class: "rate-bar", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      svg("rect", { width: 100, height: 6, class: "rest" }),
      svg("rect", { width: share.toFixed(1), height: 6, class: "part" })));
}

/**
 * @param {"download" | "upload"} kind
 * @param {Direction | null} direction
 */
function directionCard(kind, direction) {
  const arrow = html("span", { class: "arrow", "aria-hidden": "true" }, kind === "download" ? "↓" : "↑");
  const heading = html("h3", {}, arrow, texts.result[kind]);
  const main = mainRate(direction);
  if (direction === null || main === null) {
    return html("article", { class: `card direction ${kind}` }, heading, html("p", { class: "none" }, texts.result.unmeasured));
  }
  const [number, unit] = rateParts(main);
  const max = Math.max(direction.oneFlow ?? 0, direction.severalFlows ?? 0);
  const rows = html("dl", { class: "rates" },
    direction.severalFlows === null ? null : rateBar(flowsText(direction.flows ?? 0), direction.severalFlows, max),
    direction.oneFlow === null ? null : rateBar(texts.result.oneFlow, direction.oneFlow, max));
  const ratio = ratioText(direction);
  return html("article", { class: `card direction ${kind}` },
    heading,
    html("p", { class: "big" }, number, html("small", {}, ` ${unit}`)),
    rows,
    ratio && html("p", { class: "ratio" }, ratio));
}

/**
 * @param {string} name
 * @param {[string, string] | null} value
 * @param {string} note
 */
function tile(name, value, note) {
  return html("div", { class: "tile" },
    html("dt", {}, name),
    value === null
      ? html("dd", { class: "none" }, texts.result.unmeasured)
      : html("dd", {}, value[0], value[1] && html("small", {}, ` ${value[1]}`)),
    note && value !== null && html("dd", { class: "sub" }, note));
}

/** @param {Result} result */
function tiles(result) {
  const time = (/** @type {number | null} */ ms) => (ms === null ? null : millisParts(ms));
  const increase = (/** @type {number | null} */ ms) =>
    ms === null || result.rttIdle === null || ms < result.rttIdle ? "" : fill(texts.result.rttIncrease, { increase: millis(ms - result.rttIdle) });
  const { bufferbloat, loss } = result;
  const grade = bufferbloat?.grade ?? null;
  /** @type {[string, string] | null} */
  const lossValue = loss === null ? null : [percent(loss.ratio).replace(" %", ""), "%"];
  const lossNote = loss === null || loss.low === null || loss.high === null || loss.sent === null
    ? loss?.from ? named(texts.result.lossFrom, loss.from) : ""
    : fill(texts.result.lossCounted, { low: percent(loss.low), high: percent(loss.high), count: loss.sent });
  const more = bufferbloat?.increase ?? null;
  return html("dl", { class: "tiles" },
    tile(texts.result.rttIdle, time(result.rttIdle), texts.result.rttIdleNote),
    tile(texts.result.rttDownload, time(result.rttDownload), increase(result.rttDownload)),
    tile(texts.result.rttUpload, time(result.rttUpload), increase(result.rttUpload)),
    tile(texts.result.jitter, time(result.jitter), texts.result.jitterNote),
    tile(texts.result.loss, lossValue, lossNote),
    tile(texts.result.grade, grade === null ? null : [grade, ""], more === null ? "" : fill(texts.result.gradeNote, { increase: millis(more) })),
    tile(texts.result.rpm, result.rpm === null ? null : [String(Math.round(result.rpm)), texts.result.rpmUnit], texts.result.rpmNote));
}

/** Bars that are filled for each verdict. */
const STRENGTH = ["bad", "poor", "average", "good", "great"];

/** @param {NonNullable<Result["verdicts"]>} verdicts */
function verdictList(verdicts) {
  const names = /** @type {const} */ (["streaming", "gaming", "calls"]);
  return html("dl", { class: "verdicts" }, ...names.map((name) => {
    const verdict = verdicts[name];
    const strength = verdict === null ? -1 : STRENGTH.indexOf(verdict);
    const bars = strength < 0 ? null : svg("svg", { class: "strength", viewBox: "0 0 38 14", width: 38, height: 14, "aria-hidden": "true" },
      ...STRENGTH.map((_, at) => svg("rect", { x: at * 8, y: 9 - at * 2, width: 6, height: 5 + at * 2, rx: 1, class: at <= strength ? "on" : "off" })));
    return html("div", { class: strength < 0 ? "verdict" : `verdict level-${strength}` },
      html("dt", {}, texts.result[name]),
      html("dd", {}, bars, verdict === null ? texts.result.unmeasured : named(texts.result.verdict, verdict)));
  }));
}

/** @param {Result} result */
export function figures(result) {
  return html("section", { class: "figures", "aria-label": texts.result.heading },
    html("div", { class: "pair" }, directionCard("download", result.download), directionCard("upload", result.upload)),
    html("h3", { class: "unseen" }, texts.result.figures),
    tiles(result),
    result.verdicts && html("h3", { class: "label" }, texts.result.verdicts),
    result.verdicts && verdictList(result.verdicts),
    result.ecn && html("p", { class: "note" }, result.ecn),
    result.rpm !== null && result.rpmMethod && html("p", { class: "note" }, `${texts.result.rpm}: ${result.rpmMethod}`));
}

/** @param {string[]} reasons */
export function invalidAlert(reasons) {
  return html("div", { class: "alert", role: "alert" },
    html("h2", {}, texts.result.invalidHeading),
    html("ul", {}, ...reasons.map((reason) => html("li", {}, reason))),
    html("p", {}, texts.result.invalidNote));
}

/** @param {string | null} limit */
function isSaturated(limit) {
  return limit !== null && SATURATED.includes(limit);
}

/** @param {Finding} finding */
function chip({ limit }) {
  if (limit === null || limit === "unknown") return html("p", { class: "chip unknown" }, texts.finding.unknown);
  if (isSaturated(limit)) return html("p", { class: "chip good" }, texts.finding.saturated);
  return html("p", { class: "chip fixable" }, texts.finding.other);
}

/** @param {number} share */
function probabilityBar(share) {
  return svg("svg", { class: "probability-bar", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("rect", { width: 100, height: 8, class: "rest" }),
    svg("rect", { width: (share * 100).toFixed(1), height: 8, class: "part" }));
}

/** @param {string} line */
function copyButton(line) {
  const copy = button(texts.finding.copy, () => {
    const done = (/** @type {string} */ text) => {
      copy.textContent = text;
      setTimeout(() => { copy.textContent = texts.finding.copy; }, 2000);
    };
    // Without a secure context there is no clipboard.
    const copied = navigator.clipboard?.writeText(line) ?? Promise.reject(new Error("no clipboard"));
    copied.then(() => done(texts.finding.copied), () => done(selected(code) ? texts.finding.copied : texts.finding.copyFailed));
  }, { class: "copy", "aria-live": "polite", title: fill(texts.finding.copyLabel, { line }) });
  const code = html("code", { tabindex: 0 }, line);
  return html("div", { class: "command" }, html("pre", {}, code), copy);
}

/** Copies by selection. @param {HTMLElement} element */
function selected(element) {
  const selection = getSelection();
  selection?.selectAllChildren(element);
  return document.execCommand("copy");
}

/** @param {Remedy} remedy */
function remedyItem({ where, platform, line, why, gain }) {
  const title = where === null ? null
    : fill(named(texts.finding.where, where), { platform: named(texts.finding.platform, platform ?? "other") });
  return html("li", {}, title && html("h4", {}, title), line && copyButton(line),
    gain && html("p", { class: "remedy-gain" }, fill(named(texts.finding.basis, gain.basis ?? "predicted"), { factor: factor(gain.factor) })),
    why && html("p", {}, why));
}

/** @param {Result} result */
function gain({ gain: predicted, download, finding }) {
  if (predicted === null) return null;
  const { low, high } = predicted;
  const now = download?.oneFlow ?? null;
  const interval = low === null || high === null ? null : fill(texts.finding.gainInterval, { low: factor(low), high: factor(high) });
  const rates = now === null || finding?.limit === null ? null
    : fill(texts.finding.gainRate, { rate: rate(now * predicted.factor), now: rate(now) });
  return html("div", { class: "gain" },
    html("h3", {}, predicted.basis === "measured" ? texts.finding.gainMeasured : texts.finding.gain),
    predicted.where === null ? null : html("p", {}, fill(named(texts.finding.where, predicted.where), { platform: named(texts.finding.platform, "other") })),
    html("p", { class: "gain-factor" }, fill(texts.finding.gainFactor, { factor: factor(predicted.factor) })),
    interval && html("p", {}, interval),
    rates && html("p", {}, rates));
}

/** @param {Result} result */
export function findingCard(result) {
  const { finding, remedies, uploadRemedies } = result;
  const section = html("section", { class: "finding", "aria-labelledby": "finding-heading" },
    html("h2", { id: "finding-heading" }, texts.finding.heading));
  if (finding === null || (finding.sentence === null && finding.limit === null)) {
    section.append(html("p", { class: "sentence" }, texts.finding.none));
    return section;
  }
  const { limit, sentence, equation, probability, posterior, experiments } = finding;
  const head = html("div", { class: "finding-head" },
    html("div", {}, limit && html("p", { class: "limit" }, limitText(limit)), chip(finding)),
    probability === null ? null : html("div", { class: "probability" },
      html("p", {}, fill(texts.finding.probability, { probability: percent(probability) })),
      probabilityBar(probability)));
  section.append(head);
  if (sentence) section.append(html("p", { class: "sentence" }, sentence));
  if (equation) section.append(html("figure", { class: "equation" }, html("figcaption", {}, texts.finding.equation), html("code", {}, equation)));
  const others = posterior.filter((other) => other.limit !== limit).slice(0, 4);
  if (others.length) {
    section.append(html("p", { class: "others" }, `${texts.finding.alternatives}: `,
      others.map((other) => `${limitText(other.limit)} ${percent(other.probability)}`).join(", ")));
  }
  if (experiments.length) {
    section.append(html("h3", { class: "experiments" }, texts.finding.experiments), html("ul", { class: "experiment-list" }, ...experiments.map((text) => html("li", {}, text))));
  }
  const help = html("div", { class: "help" }, html("h3", {}, texts.finding.remedies),
    remedies.length ? html("ul", {}, ...remedies.map(remedyItem)) : html("p", {}, isSaturated(limit) ? texts.finding.noRemedySaturated : texts.finding.noRemedy));
  section.append(html("div", { class: "advice" }, help, gain(result)));
  if (uploadRemedies.length) {
    section.append(html("div", { class: "help" }, html("h3", {}, texts.finding.uploadRemedies), html("ul", {}, ...uploadRemedies.map(remedyItem))));
  }
  return section;
}

/** @param {Result} result */
export function differsTable({ differs, download }) {
  if (differs.length === 0) return null;
  const own = mainRate(download);
  const { method, rate: rateName, relative, rule, same, heading, note } = texts.differs;
  const flows = flowsText(mainFlows(download));
  const rows = differs.map((row) => {
    const share = own && row.rate !== null ? row.rate / own - 1 : null;
    return [named(texts.differs.methods, row.method), row.rate === null ? "–" : rate(row.rate), share === null ? "–" : Math.abs(share) < 0.005 ? same : change(share), row.rule ?? ""];
  });
  return html("section", { class: "differs" }, html("h2", {}, heading), html("p", { class: "note" }, note),
    table(heading, [method, rateName, fill(relative, { flows }), rule], rows, { class: "stacked" }));
}

/**
 * The evidence of a direction.
 * @param {string} name
 * @param {import("./protocol.js").Evidence | null} evidence
 */
function evidenceView(name, evidence) {
  if (evidence === null) return null;
  const { caption, hop, router, lastRouter, you, idle, loaded, increase, gaps, noGaps } = texts.queue;
  /** @param {string} name @param {number | null} before @param {number | null} after */
  const row = (name, before, after) => [name, before === null ? "–" : millis(before), after === null ? "–" : millis(after),
    before === null || after === null ? "–" : millis(Math.max(0, after - before))];
  const rows = evidence.hops.map(({ ttl, rttIdle, rttLoaded }) =>
    row(fill(ttl === evidence.lastRouter ? lastRouter : router, { ttl }), rttIdle, rttLoaded));
  if (evidence.visitor && rows.length) rows.push(row(you, ...evidence.visitor));
  const { paused, threshold } = evidence;
  return html("div", { class: "evidence" }, html("h3", {}, name),
    evidence.sentence && html("p", {}, evidence.sentence),
    html("p", { class: "note" }, paused === null || threshold === null ? noGaps : fill(gaps, { paused: percent(paused), threshold: percent(threshold) })),
    rows.length ? table(fill(caption, { direction: name }), [hop, idle, loaded, increase], rows, { class: "stacked numbers" }) : null);
}

/**
 * Where the queue is.
 * @param {Result} result
 */
export function queueSection({ queue }) {
  if (queue === null) return null;
  const { heading, note, notProbed } = texts.queue;
  return html("section", { class: "queue" }, html("h2", {}, heading), html("p", { class: "note" }, note),
    queue.notProbed && html("p", {}, fill(notProbed, { why: queue.notProbed })),
    evidenceView(texts.result.download, queue.download), evidenceView(texts.result.upload, queue.upload));
}

/**
 * IPv4 beside IPv6.
 * @param {Result} result
 */
export function familiesTable({ families }) {
  if (families === null) return null;
  const { heading, note, caption, figure, ipv4, ipv6, rtt, rate: rateName, interval, failed } = texts.families;
  /**
   * @param {import("./protocol.js").Family} family
   * @param {number | null} value
   * @param {import("./protocol.js").Interval | null} ends
   * @param {(value: number) => string} text
   */
  const cell = (family, value, ends, text) => {
    if (value === null) return family.failed === null ? "–" : failed[family.failed];
    return ends === null ? text(value) : fill(interval, { value: text(value), low: text(ends[0]), high: text(ends[1]) });
  };
  const both = [families.ipv4, families.ipv6];
  const rows = [
    [rtt, ...both.map((family) => cell(family, family.rtt, family.rttInterval, millis))],
    [rateName, ...both.map((family) => cell(family, family.rate, family.interval, rate))],
  ];
  return html("section", { class: "families" }, html("h2", {}, heading),
    families.sentence && html("p", { class: "sentence" }, families.sentence),
    html("p", { class: "note" }, note),
    table(caption, [figure, ipv4, ipv6], rows, { class: "stacked" }));
}

/** @param {Measured[]} steps */
export function stepsTable(steps) {
  const done = steps.filter((measured) => measured.result !== null);
  if (done.length === 0) return null;
  const { heading, caption, step: stepName, rate: rateName, rtt, congestion, finding } = texts.steps;
  const rows = done.map(({ plan, step, result, experiment }) => {
    /** @type {Child} */
    const name = html("span", {}, stepText(plan), experiment && " ", experiment && html("span", { class: "tag" }, texts.run.experiment),
      step?.why ? html("small", {}, step.why) : null);
    const reasons = result && !result.valid ? `${texts.run.invalid}: ${result.invalidBecause.join("; ")}` : null;
    const found = html("span", {}, reasons && html("strong", { class: "bad" }, reasons), result?.sentence ?? (reasons ? "" : "–"));
    return [name, result?.rate ? rate(result.rate) : "–", result?.rttLoaded ? millis(result.rttLoaded) : "–", result?.congestion ?? step?.congestion ?? "–", found];
  });
  return html("section", { class: "measured" }, html("h2", {}, heading),
    table(caption, [stepName, rateName, rtt, congestion, finding], rows, { class: "stacked" }));
}
