// The flows of a step: HTTP requests, each on a TCP connection of its own, or WebSockets.
//
// Chromium moves several times as many bytes a second through a request as through a WebSocket, so
// requests are the rule; WebSockets are for more flows than a browser has connections.

/** @typedef {import("./protocol.js").Reply} Reply */

const MIN_BLOCK = 64 * 1024;
const MAX_BLOCK = 256 * 1024;
/** Bounds of what an upload leaves in the browser's buffer. */
const MIN_BUFFERED = MIN_BLOCK;
const MAX_BUFFERED = 8 * 1024 * 1024;
/** Between the probes within a flow. */
const PROBE_EVERY_MS = 100;
const OPEN_TIMEOUT_MS = 20_000;
/** The server ends a flow with 64 probes to echo. */
const MAX_OUTSTANDING = 32;

/** Bytes that a read takes at most. */
const READ_BYTES = 1024 * 1024;
/**
 * After a read of less than this, the next one waits for a while: a read for each packet would take
 * a third of a core at 100 Mbit/s. The browser buffers 512 KiB meanwhile.
 */
const SMALL_READ = 128 * 1024;
const GATHER_MS = 5;
/** Random bytes of which the body of an upload consists. */
const BODY_PART = 16 * 1024 * 1024;

/** @param {number} ms @returns {Promise<void>} */
export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Random bytes, so that nothing on the path can compress them. @param {number} size */
function randomBlock(size) {
  const block = new Uint8Array(size);
  // One call fills at most 64 KiB.
  for (let at = 0; at < size; at += 65_536) crypto.getRandomValues(block.subarray(at, at + 65_536));
  return block;
}

/** @type {Uint8Array<ArrayBuffer> | null} */
let block = null;
/** @type {Blob | null} */
let part = null;

/**
 * The body of an upload that does not end before its step: parts that share their memory.
 * @param {number} size
 */
function endlessBody(size) {
  part ??= new Blob([randomBlock(BODY_PART)]);
  return new Blob(Array(Math.ceil(size / BODY_PART)).fill(part));
}

/**
 * What the transports have in common.
 * @typedef {object} AnyFlow
 * @property {number} received Bytes.
 * @property {boolean} isOpen
 * @property {boolean} isClosed
 * @property {() => Promise<void>} opened
 * @property {(now: number) => void} probe
 * @property {() => void} fill
 * @property {() => void} close
 */

/** A flow that is an HTTP request. @implements {AnyFlow} */
class RequestFlow {
  received = 0;
  isOpen = false;
  isClosed = false;
  #abort = new AbortController();
  #opened;

  /**
   * @param {string} url
   * @param {Blob | null} body What is uploaded; `null` for a download.
   * @param {(ms: number) => void} handled Told how long each handler took.
   * @param {() => void} closed
   */
  constructor(url, body, handled, closed) {
    /** @type {RequestInit} */
    const options = { signal: this.#abort.signal, cache: "no-store", credentials: "omit", redirect: "error" };
    const request = fetch(url, body === null ? options : { ...options, method: "POST", body });
    // The answer to an upload comes at its end: until then nothing shows that it has begun.
    this.#opened = body === null ? request.then((response) => this.#check(response)) : Promise.resolve();
    this.isOpen = body !== null;
    const whole = body === null ? request.then((response) => this.#read(response, handled)) : request;
    void whole.catch(() => {}).then(() => {
      this.isOpen = false;
      this.isClosed = true;
      closed();
    });
  }

  /** @param {Response} response */
  #check(response) {
    if (!response.ok) throw new Error(response.statusText);
    this.isOpen = true;
  }

  /**
   * @param {Response} response
   * @param {(ms: number) => void} handled
   */
  async #read(response, handled) {
    if (response.body === null) return;
    const count = (/** @type {Uint8Array} */ bytes) => {
      const before = performance.now();
      this.received += bytes.byteLength;
      handled(performance.now() - before);
    };
    const reader = ownBuffers(response.body);
    if (reader === null) {
      const plain = response.body.getReader();
      for (;;) {
        const { done, value } = await plain.read();
        if (done) return;
        count(value);
        if (value.byteLength < SMALL_READ) await pause(GATHER_MS);
      }
    }
    let buffer = new ArrayBuffer(READ_BYTES);
    for (;;) {
      const { done, value } = await reader.read(new Uint8Array(buffer));
      if (done || value === undefined) return;
      count(value);
      buffer = value.buffer;
      if (value.byteLength < SMALL_READ) await pause(GATHER_MS);
    }
  }

  opened() {
    return this.#opened;
  }

  probe() {}

  fill() {}

  close() {
    this.#abort.abort();
  }
}

/**
 * A reader into buffers of the page, which spares an allocation for each read; not every browser has it.
 * @param {ReadableStream<Uint8Array<ArrayBuffer>>} stream
 */
function ownBuffers(stream) {
  try {
    return stream.getReader({ mode: "byob" });
  } catch {
    return null;
  }
}

/** A flow that is a WebSocket. @implements {AnyFlow} */
class SocketFlow {
  received = 0;
  #target = 2 * MIN_BUFFERED;
  /** @type {Map<number, number>} */
  #outstanding = new Map();
  #next = 0;
  #probed = 0;

  /**
   * @param {string} url
   * @param {(ms: number) => void} handled Told how long each handler took.
   * @param {(sent: number, rtt: number) => void} replied
   * @param {() => void} closed
   */
  constructor(url, handled, replied, closed) {
    this.socket = new WebSocket(url);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => {
      const before = performance.now();
      if (typeof event.data === "string") {
        const id = Number(event.data);
        const sent = this.#outstanding.get(id);
        this.#outstanding.delete(id);
        if (sent !== undefined) replied(sent, before - sent);
      } else {
        this.received += event.data.byteLength;
      }
      handled(performance.now() - before);
    };
    this.socket.onclose = closed;
  }

  /** Waits until the flow is open. @returns {Promise<void>} */
  opened() {
    return new Promise((resolve, reject) => {
      if (this.socket.readyState === WebSocket.OPEN) return resolve();
      this.socket.addEventListener("open", () => resolve());
      this.socket.addEventListener("close", () => reject(new Error("closed")));
      return undefined;
    });
  }

  get isOpen() {
    return this.socket.readyState === WebSocket.OPEN;
  }

  get isClosed() {
    return this.socket.readyState === WebSocket.CLOSED;
  }

  close() {
    this.socket.close();
  }

  /** Sends a probe within the flow if it is time. @param {number} now */
  probe(now) {
    if (!this.isOpen || now - this.#probed < PROBE_EVERY_MS || this.#outstanding.size >= MAX_OUTSTANDING) return;
    this.#probed = now;
    this.#next += 1;
    this.#outstanding.set(this.#next, now);
    this.socket.send(String(this.#next));
  }

  /**
   * Fills the browser's buffer up to the target, which follows the rate: it doubles when the
   * buffer was empty, and halves when little of it was sent since the last call. A buffer that is
   * too large would delay the probes and be lost at the end.
   */
  fill() {
    if (!this.isOpen || block === null) return;
    const left = this.socket.bufferedAmount;
    if (left === 0) this.#target = Math.min(2 * this.#target, MAX_BUFFERED);
    else if (left > this.#target * 0.875) this.#target = Math.max(this.#target / 2, MIN_BUFFERED);
    const size = this.#target >= 8 * MIN_BLOCK ? MAX_BLOCK : MIN_BLOCK;
    for (let free = this.#target - left; free >= size; free -= size) {
      this.socket.send(size === MAX_BLOCK ? block : block.subarray(0, size));
    }
  }
}

/** The flows of one step. */
export class Flows {
  /** @type {AnyFlow[]} */
  #flows = [];
  /** @type {Reply[]} */
  #replies = [];
  #start = 0;
  #upload = false;
  #closed = () => {};
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #pump;

  /**
   * Opens the flows, and begins when each is open or refused, or the server has begun: it does with those
   * that could be opened in time.
   * @param {string[]} urls
   * @param {{upload: boolean, transport: "http" | "websocket", maxBytes: number}} options
   * @param {(ms: number) => void} handled
   * @param {Promise<void>} begun Resolved when the server has begun.
   */
  async open(urls, { upload, transport, maxBytes }, handled, begun) {
    this.#upload = upload;
    const replied = (/** @type {number} */ sent, /** @type {number} */ rtt) => {
      this.#replies.push([sent - this.#start, rtt]);
    };
    const closed = () => {
      if (this.#flows.every((flow) => flow.isClosed)) this.#closed();
    };
    if (transport === "http") {
      const body = upload ? endlessBody(maxBytes) : null;
      this.#flows = urls.map((url) => new RequestFlow(url, body, handled, closed));
    } else {
      if (upload) block ??= randomBlock(MAX_BLOCK);
      const socketUrl = (/** @type {string} */ url) => url.replace(/^http/, "ws");
      this.#flows = urls.map((url) => new SocketFlow(socketUrl(url), handled, replied, closed));
    }
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const timeout = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("timeout")), OPEN_TIMEOUT_MS);
    });
    try {
      const settled = Promise.allSettled(this.#flows.map((flow) => flow.opened()));
      // Nothing but the server's beginning shows that an upload by request is open.
      const opened = upload && transport === "http" ? begun : Promise.race([settled, begun]);
      await Promise.race([opened, timeout]);
      if (urls.length > 0 && !this.#flows.some((flow) => flow.isOpen)) throw new Error("closed");
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
    this.#start = performance.now();
    this.#run(handled);
  }

  /** @param {(ms: number) => void} handled */
  #run(handled) {
    const before = performance.now();
    for (const flow of this.#flows) {
      if (this.#upload) flow.fill();
      flow.probe(before);
    }
    handled(performance.now() - before);
    // Browsers raise nested timers to 4 ms, within which the largest buffer lasts at 16 Gbit/s.
    if (this.#flows.some((flow) => flow.isOpen)) this.#pump = setTimeout(() => this.#run(handled), this.#upload ? 1 : 20);
  }

  /** Waits until the server has closed all flows. @returns {Promise<void>} */
  closed() {
    return new Promise((resolve) => {
      this.#closed = resolve;
      if (this.#flows.every((flow) => flow.isClosed)) resolve();
    });
  }

  /** Bytes received by flow. */
  received() {
    return this.#flows.map((flow) => flow.received);
  }

  /** Answers since the last call. */
  takeReplies() {
    const replies = this.#replies;
    this.#replies = [];
    return replies;
  }

  close() {
    clearTimeout(this.#pump);
    for (const flow of this.#flows) flow.close();
  }
}
