// Keeping a result on the server: its link, and its deletion with the secret that only this browser
// has.

import { button, html, replace } from "./dom.js";
import { fill } from "./format.js";
import { texts } from "./texts.js";

/** @typedef {import("./history.js").Kept} Kept */

/** @param {string} path */
function address(path) {
  return new URL(path, document.baseURI);
}

/** @param {Kept} kept */
export function link(kept) {
  const url = address(`result/${kept.id}`);
  url.search = "";
  return url.href;
}

/** @param {unknown} value @returns {Kept | null} */
export function readKept(value) {
  if (typeof value !== "object" || value === null || !("id" in value) || !("secret" in value)) return null;
  const { id, secret } = value;
  const isHex = (/** @type {unknown} */ text) => typeof text === "string" && /^[0-9a-f]{32}$/.test(text);
  return isHex(id) && isHex(secret) ? { id: String(id), secret: String(secret) } : null;
}

/**
 * Keeps the result of a run.
 * @param {string} run
 * @returns {Promise<Kept>} Rejected with the reason that the visitor is told.
 */
async function keep(run) {
  const response = await fetch(address(`api/run/${run}/keep`), { method: "POST", cache: "no-store", credentials: "omit" });
  if (!response.ok) throw new Error((await response.text()).trim().slice(0, 300));
  const kept = readKept(await response.json());
  if (kept === null) throw new Error(texts.keep.failed);
  return kept;
}

/**
 * Deletes a result from the server.
 * @param {Kept} kept
 * @returns {Promise<boolean>} True if it is not there any more.
 */
export async function forget(kept) {
  try {
    const headers = { Authorization: `Bearer ${kept.secret}` };
    const response = await fetch(address(`result/${kept.id}`), { method: "DELETE", headers, cache: "no-store", credentials: "omit" });
    return response.ok || response.status === 404;
  } catch {
    return false;
  }
}

/**
 * The section with the button that keeps a result, or with the link of one that is kept.
 * @param {string | null} run The run; `null` if it cannot be kept any more.
 * @param {Kept | null} kept
 * @param {(kept: Kept | null) => void} changed Told what is to be remembered.
 */
export function keepSection(run, kept, changed) {
  const area = html("div", {});
  const note = html("p", { class: "note", role: "status" });
  const { heading, offer, offerNote, kept: keptText, remove, removed, failed } = texts.keep;

  const showOffer = () => {
    const start = button(offer, () => {
      start.disabled = true;
      note.textContent = "";
      keep(run ?? "").then((receipt) => {
        changed(receipt);
        showLink(receipt);
      }, (/** @type {unknown} */ error) => {
        start.disabled = false;
        note.textContent = error instanceof Error && error.message ? error.message : failed;
      });
    }, { class: "plain" });
    replace(area, html("p", {}, offerNote), html("p", { class: "actions" }, start));
  };

  /** @param {Kept} receipt */
  const showLink = (receipt) => {
    const url = link(receipt);
    const anchor = html("a", { href: url, class: "share-link" }, url);
    const drop = button(remove, () => {
      drop.disabled = true;
      void forget(receipt).then((done) => {
        drop.disabled = false;
        note.textContent = done ? removed : failed;
        if (!done) return;
        changed(null);
        replace(area);
      });
    }, { class: "plain" });
    replace(area, html("p", {}, keptText), html("p", {}, anchor), html("p", { class: "actions" }, drop));
    anchor.focus({ preventScroll: true });
  };

  if (kept) showLink(kept);
  else showOffer();
  return html("section", { class: "keep", "aria-label": heading }, html("h2", {}, heading), area, note);
}

/** Asks before results that are also on the server are deleted. @param {number} count */
export function confirmRemoval(count) {
  return count === 0 || confirm(fill(texts.keep.removeConfirm, { count }));
}
