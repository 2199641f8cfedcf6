// The first script of the page: its texts, the options and the start button. Everything else is
// loaded behind it, so that the page is visible early.

import { byId, html } from "./dom.js";
import { bytes, fill } from "./format.js";
import { texts } from "./texts.js";

const LIMITS = [100e6, 250e6, 1e9, 4e9];
/** About this long, where the rate settles and no experiment tells causes apart. */
const SECONDS = 30;
/** Of which both directions together transfer for this long. */
const TRANSFER_SECONDS = 23;
/** The same of IPv4 and IPv6 on their own, before it. */
const FAMILY_SECONDS = 8;
const FAMILY_TRANSFER_SECONDS = 4;
/** Whether this server can be measured over each of them. */
let hasFamilies = false;

/**
 * Fills the elements whose `data-text` names a text.
 * @param {string} path
 */
function textAt(path) {
  /** @type {unknown} */
  let found = texts;
  for (const name of path.split(".")) found = /** @type {Record<string, unknown>} */ (found)?.[name];
  return typeof found === "string" ? found : path;
}

for (const element of document.querySelectorAll("[data-text]")) {
  if (element instanceof HTMLElement) element.textContent = textAt(element.dataset.text ?? "");
}
for (const element of document.querySelectorAll("[data-label-text]")) {
  if (element instanceof HTMLElement) element.setAttribute("aria-label", textAt(element.dataset.labelText ?? ""));
}
document.title = texts.page.title;
document.documentElement.dataset.state = "ready";

const parameters = new URLSearchParams(location.search);
const token = parameters.get("token");
if (token !== null) {
  // The other pages pass it on to their link back. They are of this server, and send no Referer.
  for (const anchor of document.querySelectorAll("a.brand, .pages a")) {
    if (anchor instanceof HTMLAnchorElement) anchor.search = new URLSearchParams({ token }).toString();
  }
}
const limit = /** @type {HTMLSelectElement} */ (byId("limit"));
const thorough = /** @type {HTMLInputElement} */ (byId("thorough"));
const start = byId("start");

/** A phone may pay for its data. @returns {number} */
function suggestedLimit() {
  /** @type {{saveData?: boolean} | undefined} */
  const connection = "connection" in navigator ? /** @type {{saveData?: boolean}} */ (navigator.connection) : undefined;
  const isPhone = matchMedia("(pointer: coarse) and (max-width: 700px)").matches;
  return connection?.saveData ? 100e6 : isPhone ? 250e6 : 4e9;
}

/** The limit in the address, for tests, or else the one that suits the device. */
function initialLimit() {
  const given = Number(parameters.get("max_bytes"));
  return Number.isSafeInteger(given) && given > 0 ? given : suggestedLimit();
}

const initial = initialLimit();
for (const value of [...new Set([...LIMITS, initial])].sort((a, b) => a - b)) {
  limit.append(html("option", { value, selected: value === initial }, bytes(value)));
}
thorough.checked = parameters.get("thorough") !== "0";

function announceBytes() {
  const most = Number(limit.value);
  const transfers = TRANSFER_SECONDS + (hasFamilies ? FAMILY_TRANSFER_SECONDS : 0);
  const estimate = Math.min(most, (100e6 / 8) * transfers);
  const seconds = SECONDS + (hasFamilies ? FAMILY_SECONDS : 0);
  byId("announcement").textContent = fill(texts.start.announce, { bytes: bytes(estimate), most: bytes(most), seconds });
}
limit.addEventListener("change", announceBytes);
announceBytes();

const page = import("./page.js").then((module) => new module.Page());

void page.then(({ names }) => names).then((names) => {
  hasFamilies = names !== null;
  announceBytes();
});

async function begin() {
  const { state } = document.documentElement.dataset;
  if (state === "running") return;
  (await page).start({ maxBytes: Number(limit.value), thorough: thorough.checked });
}
start.addEventListener("click", () => void begin());
byId("again").addEventListener("click", () => void begin());

// For tests: the result is then in `document.documentElement.dataset.result`.
if (parameters.has("autostart")) void begin();
