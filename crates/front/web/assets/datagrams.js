// Datagrams of a step that measures loss: which of them arrive over WebTransport.

import { pause } from "./flows.js";

/** @typedef {import("./protocol.js").Datagrams} Datagrams */

/** The server waits a little longer than this for a session. */
const OPEN_MS = 4000;
/** The time after the planned end in which the server closes the session. */
const LATE_MS = 5000;

/** Whether this page can receive datagrams: browsers allow it in secure contexts. */
export function canReceive() {
  return self.isSecureContext && typeof WebTransport === "function";
}

/**
 * Receives until the server closes the session.
 * @param {string} url
 * @param {Datagrams} datagrams
 * @param {number} seconds
 * @returns {Promise<string | null>} A bit for each number, the lowest first, as bytes in hexadecimal;
 *   `null` if no session can be opened.
 */
export async function receive(url, { certificate, count }, seconds) {
  const value = Uint8Array.from(certificate.match(/../g) ?? [], (byte) => parseInt(byte, 16));
  /** @type {WebTransport | null} */
  let session = null;
  try {
    session = new WebTransport(url, { serverCertificateHashes: [{ algorithm: "sha-256", value }] });
    session.closed.catch(() => {});
    // By default a browser keeps one datagram, and discards those before it.
    session.datagrams.incomingHighWaterMark = count;
    await Promise.race([session.ready, pause(OPEN_MS).then(() => { throw new Error("no session in time"); })]);
  } catch {
    close(session);
    return null;
  }
  const bits = new Uint8Array(Math.ceil(count / 8));
  const late = setTimeout(() => close(session), seconds * 1000 + LATE_MS);
  try {
    const reader = session.datagrams.readable.getReader();
    for (;;) {
      const { value: datagram, done } = await reader.read();
      if (done) break;
      mark(bits, datagram);
    }
  } catch {
    // The server has closed the session.
  }
  clearTimeout(late);
  return Array.from(bits, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** @param {WebTransport | null} session */
function close(session) {
  try {
    session?.close();
  } catch {
    // It is not open.
  }
}

/**
 * @param {Uint8Array} bits
 * @param {unknown} datagram
 */
function mark(bits, datagram) {
  if (!(datagram instanceof Uint8Array) || datagram.byteLength < 4) return;
  const number = new DataView(datagram.buffer, datagram.byteOffset).getUint32(0);
  const byte = number >>> 3;
  bits[byte] = (bits[byte] ?? 0) | (1 << (number & 7));
}
