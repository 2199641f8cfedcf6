// The worker's own health during a step: its share of a core, and its stalls.

const TICK_MS = 25;
/**
 * An answer to a message to itself that takes longer means that other tasks were queued. An idle
 * worker takes less than 0.1 ms.
 */
const QUEUED_MS = 0.4;
/** A clock of the day that runs ahead of the monotonic clock by this much means sleep. */
const SLEPT_MS = 1000;

/** @typedef {{busy: number | null, longestStallMs: number}} HealthReport */

export class Health {
  #channel = new MessageChannel();
  #posted = 0;
  #asked = 0;
  #queued = 0;
  #handling = 0;
  #since = 0;
  #last = 0;
  #lastDay = 0;
  #stall = 0;
  /** @type {ReturnType<typeof setInterval> | undefined} */
  #timer;

  constructor() {
    this.#channel.port1.onmessage = () => {
      if (this.#posted === 0) return;
      this.#asked += 1;
      if (performance.now() - this.#posted > QUEUED_MS) this.#queued += 1;
      this.#posted = 0;
    };
  }

  /** Begins a step. */
  start() {
    clearInterval(this.#timer);
    this.#asked = this.#queued = this.#handling = this.#stall = this.#posted = 0;
    this.#since = this.#last = performance.now();
    this.#lastDay = Date.now();
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** A sign of life: the gap since the last one is a stall if it is longer than a tick. */
  #alive() {
    const [now, day] = [performance.now(), Date.now()];
    const gap = now - this.#last;
    const slept = day - this.#lastDay - gap;
    this.#stall = Math.max(this.#stall, gap - TICK_MS, slept > SLEPT_MS ? slept : 0);
    this.#last = now;
    this.#lastDay = day;
  }

  #tick() {
    this.#alive();
    if (this.#posted === 0) {
      this.#posted = performance.now();
      this.#channel.port2.postMessage(0);
    }
  }

  /**
   * Adds the time that a handler took.
   * @param {number} ms
   */
  handled(ms) {
    this.#handling += ms;
    this.#alive();
  }

  /** The share of messages to itself that came late; `null` with too few. */
  queued() {
    return this.#asked >= 20 ? this.#queued / this.#asked : null;
  }

  /**
   * Ends a step. The share of a core is the larger of the time in handlers and the share of the
   * messages to itself that came late. Of those, some are late because the machine has other work:
   * that is the share of an idle worker's.
   * @param {number | null} [delayed] The late share of an idle worker.
   * @returns {HealthReport}
   */
  stop(delayed = null) {
    this.#tick();
    clearInterval(this.#timer);
    const elapsed = performance.now() - this.#since;
    const late = this.queued();
    const idle = Math.min(delayed ?? 0, 0.99);
    const queued = late === null ? null : Math.max(0, (late - idle) / (1 - idle));
    const handling = elapsed > 0 ? this.#handling / elapsed : 0;
    return {
      busy: queued === null ? null : Math.min(1, Math.max(queued, handling)),
      longestStallMs: Math.max(0, Math.round(this.#stall)),
    };
  }
}
