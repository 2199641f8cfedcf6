// Numbers and units as text.

const LOCALE = "en";

/**
 * Replaces each `{name}` of a text by its value.
 * @param {string} text
 * @param {Record<string, string | number>} values
 */
export function fill(text, values) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/**
 * A number with three significant digits, at most `decimals` of them after the point.
 * @param {number} value
 */
function significant(value, decimals = 2) {
  const magnitude = Math.abs(value);
  const digits = magnitude >= 100 ? 0 : magnitude >= 10 ? 1 : 2;
  const fraction = Math.min(digits, decimals);
  return value.toLocaleString(LOCALE, { minimumFractionDigits: fraction, maximumFractionDigits: fraction });
}

/**
 * A rate as number and unit.
 * @param {number} rate bit/s
 * @returns {[string, string]}
 */
export function rateParts(rate) {
  if (rate >= 999.5e6) return [significant(rate / 1e9), "Gbit/s"];
  if (rate >= 999.5e3 || rate === 0) return [significant(rate / 1e6), "Mbit/s"];
  return [significant(rate / 1e3), "kbit/s"];
}

/** @param {number} rate bit/s */
export function rate(rate) {
  return rateParts(rate).join(" ");
}

/**
 * A time as number and unit.
 * @param {number} ms
 * @returns {[string, string]}
 */
export function millisParts(ms) {
  if (ms >= 9999.5) return [significant(ms / 1000), "s"];
  return [significant(ms, ms >= 10 ? 1 : 2), "ms"];
}

/** @param {number} ms */
export function millis(ms) {
  return millisParts(ms).join(" ");
}

/** @param {number} bytes */
export function bytes(bytes) {
  if (bytes >= 1e9) return `${round(bytes / 1e9)} GB`;
  if (bytes >= 1e6) return `${round(bytes / 1e6)} MB`;
  if (bytes >= 1e3) return `${round(bytes / 1e3)} kB`;
  return `${Math.round(bytes)} B`;
}

/** @param {number} value */
function round(value) {
  return value.toLocaleString(LOCALE, { maximumSignificantDigits: 3 });
}

/**
 * A share of one as a percentage.
 * @param {number} share
 */
export function percent(share) {
  const value = share * 100;
  const digits = value === 0 || value >= 10 ? 0 : value >= 1 ? 1 : 2;
  return `${value.toLocaleString(LOCALE, { maximumFractionDigits: digits })} %`;
}

/**
 * A relative change with its sign.
 * @param {number} share
 */
export function change(share) {
  const text = Math.round(share * 100);
  return `${text > 0 ? "+" : text < 0 ? "−" : "±"}${Math.abs(text)} %`;
}

/** @param {number} factor */
export function factor(factor) {
  return factor.toLocaleString(LOCALE, { maximumFractionDigits: factor >= 10 ? 0 : 1 });
}

/** @param {number} count */
export function count(count) {
  return Math.round(count).toLocaleString(LOCALE);
}

/** @param {number} seconds */
export function seconds(seconds) {
  return seconds.toLocaleString(LOCALE, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
}

/** @param {string} iso */
export function date(iso) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  return at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

/**
 * A finding without the options of the command line, which a visitor of the page does not have.
 * @param {string} sentence
 */
export function withoutOptions(sentence) {
  return sentence.replace(/ \(--?[a-zA-Z][^()]*\)/g, "").replace(/; a second test with -[^;.]* would decide/g, "");
}
