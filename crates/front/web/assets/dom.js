// Elements of the page. Texts, the server's included, become text nodes only.

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | null | undefined | false} Child */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Attributes */

/**
 * Sets attributes: `true` without a value; `false`, `null` and `undefined` not at all.
 * @param {Element} element
 * @param {Attributes} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/**
 * Creates an HTML element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function html(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  element.append(...kept(children));
  return element;
}

/**
 * Creates an SVG element.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setAttributes(element, attributes);
  element.append(...kept(children));
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function kept(children) {
  /** @type {(Node | string)[]} */
  const nodes = [];
  for (const child of children) if (child || child === "") nodes.push(child);
  return nodes;
}

/**
 * Replaces the children of an element.
 * @param {Element} parent
 * @param {...Child} children
 */
export function replace(parent, ...children) {
  parent.replaceChildren(...kept(children));
}

/**
 * The element with this id, which the page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}

/**
 * A button with a text and an action.
 * @param {string} text
 * @param {() => void} action
 * @param {Attributes} [attributes]
 */
export function button(text, action, attributes = {}) {
  const element = html("button", { type: "button", ...attributes }, text);
  element.addEventListener("click", action);
  return element;
}

/**
 * A table with a caption for screen readers and scopes on its headings. The first cell of each
 * row is the row's heading.
 * @param {string} caption
 * @param {string[]} headings
 * @param {Child[][]} rows
 * @param {Attributes} [attributes]
 */
export function table(caption, headings, rows, attributes = {}) {
  const head = html("tr", {}, ...headings.map((text) => html("th", { scope: "col" }, text)));
  const body = rows.map((cells) =>
    html("tr", {}, ...cells.map((cell, index) =>
      index === 0
        ? html("th", { scope: "row", "data-label": headings[0] }, cell)
        : html("td", { "data-label": headings[index], class: cell === "–" ? "empty" : null }, cell))));
  return html("table", attributes,
    html("caption", { class: "unseen" }, caption),
    html("thead", {}, head),
    html("tbody", {}, ...body));
}
