// The worker of the probe connection. It has a thread of its own, so that the bulk data of the
// flows does not delay the answers' timestamps.

import { Health } from "./health.js";

/** @typedef {import("./protocol.js").ProbeCommand} ProbeCommand */
/** @typedef {import("./protocol.js").ProbeReport} ProbeReport */
/** @typedef {import("./protocol.js").Reply} Reply */

/** Between probes; the server echoes at most 50 a second. */
const INTERVAL_MS = 40;
const REPORT_EVERY_MS = 200;
/** Age at which a probe without an answer counts as lost. */
const LOST_AFTER_MS = 3000;
const MAX_OUTSTANDING = 200;

/** @type {WebSocket | null} */
let socket = null;
/** The step that is measured; `null` between steps. @type {number | null} */
let step = null;
let start = 0;
let next = 0;
let reported = 0;
/** Times of sending by probe. @type {Map<number, number>} */
let outstanding = new Map();
/** @type {Reply[]} */
let replies = [];
/** This worker has next to nothing to do: what delays it is the load of the machine. */
const health = new Health();

/** @param {ProbeReport} report */
function post(report) {
  self.postMessage(report);
}

function flush() {
  const now = performance.now();
  for (const [id, sent] of outstanding) {
    if (now - sent > LOST_AFTER_MS) {
      outstanding.delete(id);
    }
  }
  if (step !== null && replies.length > 0) post({ is: "replies", step, replies, delayed: health.queued() });
  replies = [];
  reported = now;
}

setInterval(() => {
  if (socket?.readyState !== WebSocket.OPEN || step === null) return;
  if (outstanding.size < MAX_OUTSTANDING) {
    next += 1;
    outstanding.set(next, performance.now());
    socket.send(String(next));
  }
  if (performance.now() - reported >= REPORT_EVERY_MS) flush();
}, INTERVAL_MS);

/** @param {string} url */
function connect(url) {
  const opened = new WebSocket(url);
  socket = opened;
  opened.onopen = () => post({ is: "open" });
  opened.onclose = () => post({ is: "closed" });
  opened.onmessage = (event) => {
    const now = performance.now();
    const id = Number(event.data);
    const sent = outstanding.get(id);
    if (sent === undefined) return;
    outstanding.delete(id);
    replies.push([sent - start, now - sent]);
  };
}

self.onmessage = (/** @type {MessageEvent<ProbeCommand>} */ event) => {
  const command = event.data;
  if (command.do === "connect") connect(command.url);
  if (command.do === "measure") {
    outstanding = new Map();
    replies = [];
    step = command.step;
    start = reported = performance.now();
    health.start();
  }
  if (command.do === "rest") {
    flush();
    health.stop();
    step = null;
  }
};
