// The section "Wi-Fi, line or far away?": its button, its progress and its result.

import { byId, button, html, replace, table } from "./dom.js";
import { bytes, fill, millis, percent, rate } from "./format.js";
import { Legs, findPeer } from "./legs.js";
import { limitText } from "./results.js";
import { texts } from "./texts.js";

/** @typedef {import("./legsprotocol.js").Direction} Direction */
/** @typedef {import("./legsprotocol.js").Peer} Peer */
/** @typedef {import("./legsprotocol.js").Verdict} Verdict */

/** @param {string} text */
function announce(text) {
  byId("status").textContent = text;
}

/**
 * You, the near server and the far one, with the leg that limits marked by words, weight and shape.
 * @param {Direction} direction
 */
function picture({ limiting, nearRate, farRate, sentence }) {
  const isFar = limiting === "line" || limiting === "far" || limiting === "beyond";
  /** @param {string} name @param {number | null} value @param {boolean} limits */
  const link = (name, value, limits) =>
    html("div", { class: limits ? "leg limits" : "leg" },
      html("span", { class: "leg-name" }, name),
      html("span", { class: "leg-line" }),
      html("span", { class: "leg-rate" }, value === null ? "–" : rate(value)),
      limits && html("strong", { class: "leg-mark" }, texts.legs.marks[limiting]));
  const node = (/** @type {string} */ name) => html("div", { class: "leg-node" }, name);
  return html("div", { class: "legs-picture", role: "img", "aria-label": sentence ?? texts.legs.marks[limiting] },
    node(texts.legs.you), link(texts.legs.nearLeg, nearRate, limiting === "near"), node(texts.legs.nearServer),
    link(texts.legs.farLeg, farRate, isFar), node(texts.legs.farServer));
}

/**
 * @param {string} name
 * @param {Direction | null} direction
 */
function directionView(name, direction) {
  if (direction === null) return html("div", {}, html("h3", {}, name), html("p", { class: "none" }, texts.result.unmeasured));
  const { sentence, equation, unseen } = direction;
  return html("div", { class: "legs-direction" },
    html("h3", {}, name),
    picture(direction),
    sentence && html("p", { class: "sentence" }, sentence),
    equation && html("figure", { class: "equation" }, html("figcaption", {}, texts.finding.equation), html("code", {}, equation)),
    unseen && html("p", { class: "note" }, unseen));
}

/** @param {Verdict} verdict */
function legsTable({ download, upload, nearRtt, farRtt }) {
  const ms = (/** @type {number | null | undefined} */ value) => (value === null || value === undefined ? "–" : millis(value));
  const speed = (/** @type {number | null | undefined} */ value) => (value ? rate(value) : "–");
  const limit = (/** @type {string | null | undefined} */ name) => (name ? limitText(name) : "–");
  /** @param {Direction | null} direction */
  const ratio = (direction) => {
    if (!direction?.ratio) return "–";
    const { mean, low, high } = direction.ratio;
    return fill(texts.legs.interval, { mean: percent(mean), low: percent(low), high: percent(high) });
  };
  const { figure, near, far, relative, rtt, rateOf, increaseOf, limitOf, caption } = texts.legs.table;
  const rows = [[rtt, ms(nearRtt), ms(farRtt), "–"]];
  for (const [name, direction] of /** @type {const} */ ([[texts.result.download, download], [texts.result.upload, upload]])) {
    rows.push([fill(rateOf, { name }), speed(direction?.nearRate), speed(direction?.farRate), ratio(direction)],
      [fill(increaseOf, { name }), ms(direction?.nearIncrease), ms(direction?.farIncrease), "–"],
      [fill(limitOf, { name }), limit(direction?.nearLimit), limit(direction?.farLimit), "–"]);
  }
  return table(caption, [figure, near, far, relative], rows, { class: "stacked legs-table" });
}

export class LegsView {
  #peer;
  #element;
  #stage = html("div", { class: "legs-stage" });
  #note = html("p", { class: "note" });
  #limit = /** @type {HTMLSelectElement} */ (byId("limit"));

  /**
   * @param {HTMLElement} element
   * @param {Peer} peer
   */
  constructor(element, peer) {
    this.#peer = peer;
    this.#element = element;
    this.#limit.addEventListener("change", () => this.#announce());
    this.#rest();
  }

  /** Shows the section if this server has a peer. @param {HTMLElement} element */
  static async show(element) {
    const peer = await findPeer();
    if (peer === null) return null;
    return new LegsView(element, peer);
  }

  #announce() {
    this.#note.textContent = fill(texts.legs.announce, { bytes: bytes(Number(this.#limit.value)) });
  }

  /** What is shown between two measurements. @param {...(Node | null)} results */
  #rest(...results) {
    this.#announce();
    const start = button(results.length ? texts.legs.again : texts.legs.button, () => this.start(), { class: "plain" });
    replace(this.#stage, ...results, html("p", {}, start), this.#note);
    replace(this.#element,
      html("h2", { id: "legs-heading", tabindex: -1 }, texts.legs.heading),
      html("p", { class: "note" }, fill(texts.legs.lead, { peer: this.#peer.origin })),
      this.#stage);
    this.#element.hidden = false;
  }

  start() {
    const { dataset } = document.documentElement;
    if (dataset.state === "running" || dataset.legs === "running") return;
    dataset.legs = "running";
    const progress = html("p", { class: "legs-progress" }, texts.run.connecting);
    const bar = html("progress", { max: 1, value: 0, "aria-label": texts.run.progress });
    const legs = new Legs(this.#peer, Number(this.#limit.value), {
      began: (round, rounds, leg) => {
        progress.textContent = fill(texts.legs.progress, { round, rounds, leg: leg === "near" ? texts.legs.nearServer : texts.legs.farServer });
        bar.value = (2 * (round - 1) + (leg === "near" ? 0 : 1)) / (2 * rounds);
        announce(progress.textContent ?? "");
      },
      verdict: (verdict, json) => {
        dataset.legs = "finished";
        dataset.legsVerdict = JSON.stringify(json);
        this.#verdict(verdict);
      },
      problem: (message) => {
        dataset.legs = "problem";
        const alert = html("div", { class: "alert problem" }, html("h3", {}, texts.problem.heading), html("p", {}, message));
        this.#rest(alert);
        announce(fill(texts.run.failed, { message }));
      },
    });
    const stop = button(texts.start.stop, () => {
      legs.stop();
      dataset.legs = "";
      this.#rest();
      announce(texts.run.stopped);
      this.#element.querySelector("button")?.focus();
    }, { class: "plain stop" });
    replace(this.#stage, progress, bar, html("p", {}, stop));
    stop.focus({ preventScroll: true });
  }

  /** @param {Verdict} verdict */
  #verdict(verdict) {
    this.#rest(directionView(texts.result.download, verdict.download), directionView(texts.result.upload, verdict.upload), legsTable(verdict));
    announce(verdict.download?.sentence ?? verdict.upload?.sentence ?? "");
    byId("legs-heading").focus({ preventScroll: true });
  }
}
