"use strict";
// Reads what tcp-graphs wrote (explain/tcp-graphs/src/columns.rs): columns of LEB128 numbers.

class Columns {
  constructor(text) {
    const binary = atob(text);
    this.bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) this.bytes[i] = binary.charCodeAt(i);
    this.at = 0;
  }

  // Beyond 2^53 a number is only approximate.
  number() {
    let value = 0;
    let scale = 1;
    let byte;
    do {
      byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  }

  // Differences in zigzag form; a 0 is followed by the number of further zeros.
  column() {
    const values = new Float64Array(this.number());
    let last = 0;
    for (let i = 0; i < values.length; ) {
      const difference = this.number();
      if (difference === 0) {
        const until = i + 1 + this.number();
        values.fill(last, i, until);
        i = until;
      } else {
        last += difference % 2 ? -(difference + 1) / 2 : difference / 2;
        values[i++] = last;
      }
    }
    return values;
  }

  // The low ends and the high ends, the latter stored relative to the former.
  spans() {
    const low = this.column();
    const high = this.column();
    for (let i = 0; i < low.length; i++) high[i] += low[i];
    return { low, high };
  }
}

// A series of bins: `start[i]` is when the i-th begins, in seconds.
const binned = (columns, width_s) => {
  const start = columns.column();
  for (let i = 0; i < start.length; i++) start[i] *= width_s;
  return { start, width: width_s };
};

const decodeBins = (text, width_ns, markCount) => {
  const columns = new Columns(text);
  const width = width_ns / 1e9;
  const data = binned(columns, width);
  data.packets = columns.spans();
  data.segments = columns.column();
  data.bytes = columns.column();
  data.seq = columns.spans();
  const marks = binned(columns, width);
  marks.seq = columns.spans();
  marks.counts = Array.from({ length: markCount }, () => columns.column());
  const acks = binned(columns, width);
  acks.packets = columns.spans();
  acks.segments = columns.column();
  acks.ack = columns.spans();
  acks.edge = columns.spans();
  for (let i = 0; i < acks.start.length; i++) {
    acks.edge.low[i] += acks.ack.low[i];
    acks.edge.high[i] += acks.ack.low[i];
  }
  acks.window = columns.spans();
  acks.delivered = columns.column();
  const single = () => Object.assign(binned(columns, width), { value: columns.spans() });
  const [sacked, rtt, inFlight] = [single(), single(), single()];
  const seconds = (values) => values.map((ns) => ns / 1e9);
  rtt.seconds = { low: seconds(rtt.value.low), high: seconds(rtt.value.high) };
  return { width, data, marks, acks, sacked, rtt, inFlight };
};

// The kept packets of both sides, in order of the capture.
const decodePackets = (texts) => {
  const all = [];
  texts.forEach((text, side) => {
    const columns = new Columns(text);
    const names = ["number", "ordinal", "time", "tcpFlags", "flags", "mark", "seq", "len", "ack",
      "window", "inFlight", "rtt", "blockCount"];
    const fields = Object.fromEntries(names.map((name) => [name, columns.column()]));
    const blocks = columns.spans();
    let block = 0;
    for (let i = 0; i < fields.number.length; i++) {
      const packet = { side, blocks: [] };
      for (const name of names) packet[name] = fields[name][i];
      packet.time /= 1e9;
      for (let n = 0; n < packet.blockCount; n++, block++) {
        packet.blocks.push([packet.ack + blocks.low[block], packet.ack + blocks.high[block]]);
      }
      all.push(packet);
    }
  });
  all.sort((a, b) => a.ordinal - b.ordinal);
  // Times may run backwards; what is looked up by time is in order of time.
  const byTime = all.slice().sort((a, b) => a.time - b.time || a.ordinal - b.ordinal);
  // What each side has in flight after a packet, if all packets are here.
  const [sent, acked] = [[], []];
  for (const packet of byTime) {
    const { side, seq, len, ack, tcpFlags } = packet;
    const end = seq + len + (tcpFlags & 1) + ((tcpFlags >> 1) & 1);
    if (end > seq) sent[side] = Math.max(sent[side] ?? end, end);
    if (ack >= 0) acked[1 - side] = Math.max(acked[1 - side] ?? ack, ack);
    packet.outstanding = [0, 1].map((own) =>
      sent[own] === undefined || acked[own] === undefined ? undefined : Math.max(0, sent[own] - acked[own]));
  }
  return { all, byTime, times: Float64Array.from(byTime, (packet) => packet.time) };
};

// The first position in ascending `values` that is not below `value`.
const lowerBound = (values, value) => {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
};
