// The four graphs of a direction: time-sequence, throughput, RTT, windows.

// Kept packets in a time span.
const keptIn = (from, to) => {
  const { byTime, times } = state.packets;
  return byTime.slice(lowerBound(times, from), lowerBound(times, to));
};

// How many packets of either kind the visible bins have.
const packetsIn = (bins, from, to) => {
  const sum = (series) => {
    const [first, end] = visible(series, from, to);
    let count = 0;
    for (let i = first; i < end; i++) count += series.segments[i];
    return count;
  };
  return { data: sum(bins.data), acks: sum(bins.acks) };
};

// The last value before `from`, for lines that keep their value.
const valueBefore = (series, values, from) => {
  const i = lowerBound(series.start, from - series.width) - 1;
  return i < 0 ? undefined : values[i];
};

// Whether to draw single packets, and whether they are all there are.
const detail = (bins, packets, from, to, width) => {
  const wide = (bins.width / (to - from)) * width >= WIDE;
  const exact = state.stream.kept === state.stream.packetCount && packets.length <= 4000;
  return { single: exact || wide, exact };
};

const drawSequence = (plot, bins, from, to) => {
  const { data, acks, marks, sacked } = bins;
  const stevens = state.stevens;
  const seq = range(data, data.seq, from, to);
  const ack = range(acks, acks.ack, from, to);
  // What was sent and acknowledged before is at the left edge.
  const before = [valueBefore(data, data.seq.high, from), valueBefore(acks, acks.ack.high, from)];
  const known = before.filter((value) => value !== undefined);
  const low = Math.min(seq.low, ack.low, ...known, Infinity);
  let high = Math.max(seq.high, ack.high, ...known, -Infinity);
  if (!(high >= low)) return plot.begin(from, to, 0, 1, BYTES), plot.end();
  if (!stevens) {
    // A window far above the data would flatten it.
    const edge = Math.max(range(acks, acks.edge, from, to).high, valueBefore(acks, acks.edge.high, from) ?? 0);
    const room = Math.max((high - low) * 1.6, 3000);
    if (edge > high) high = Math.min(edge, low + room);
  }
  const margin = (high - low) * 0.04 || 1;
  plot.begin(from, to, low - margin, high + margin, BYTES);
  const packets = keptIn(from, to);
  const { single, exact } = detail(bins, packets, from, to, plot.width);
  const context = plot.context;
  if (!exact) {
    context.globalAlpha = single ? 0.3 : 1;
    plot.bars(plot.runs(data, data.seq), "data", 1.5);
    context.globalAlpha = 1;
    if (!stevens) {
      plot.bars(plot.runs(sacked, sacked.value), "sack", 1.5);
    }
  }
  if (!stevens && !exact) {
    plot.steps(plot.runs(acks, acks.ack), "ack", 1.4, [], before[1]);
    const edge = valueBefore(acks, acks.edge.high, from);
    plot.steps(plot.runs(acks, acks.edge), "window", 1.4, [7, 3], edge);
  }
  if (single) drawPackets(plot, packets, exact);
  drawMarks(plot, marks, packets, single, exact);
  plot.end();
};

const drawPackets = (plot, packets, exact) => {
  const own = packets.filter((packet) => packet.side === state.side);
  const answers = packets.filter((packet) => packet.side !== state.side && packet.ack >= 0);
  const stevens = state.stevens;
  const half = Math.min(3, plot.width / Math.max(1, own.length) / 2);
  if (stevens) {
    plot.context.fillStyle = plot.colour("data");
    for (const { time, seq, len } of own) {
      if (len > 0) plot.context.fillRect(plot.x(time) - 1.5, plot.y(seq) - 1.5, 3, 3);
    }
    return;
  }
  plot.stroke("data", 1.2, [], (context) => {
    for (const { time, seq, len } of own) {
      if (len === 0) continue;
      const [x, bottom, top] = [plot.x(time), plot.y(seq), plot.y(seq + len)];
      context.moveTo(x, bottom);
      context.lineTo(x, top);
      context.moveTo(x - half, bottom);
      context.lineTo(x + half, bottom);
      context.moveTo(x - half, top);
      context.lineTo(x + half, top);
    }
  });
  plot.stroke("sack", 2, [], (context) => {
    for (const { time, blocks } of answers) {
      for (const [left, right] of blocks) {
        context.moveTo(plot.x(time), plot.y(left));
        context.lineTo(plot.x(time), Math.min(plot.y(right), plot.y(left) - 1.5));
      }
    }
  });
  if (!exact) return;
  exactSteps(plot, "ack", [], (packet) => acknowledges(packet) && packet.ack);
  exactSteps(plot, "window", [7, 3], (packet) => acknowledges(packet) && packet.ack + packet.window);
};

// Whether a packet acknowledges data of the direction shown.
const acknowledges = (packet) => packet.side !== state.side && packet.ack >= 0;

// A line through single packets that keeps its value, for streams whose packets are all in
// the page; `of` is false for packets that are not of the line.
const exactSteps = (plot, name, dash, of) => {
  const { byTime, times } = state.packets;
  const first = lowerBound(times, plot.from);
  plot.stroke(name, 1.4, dash, (context) => {
    let last = false;
    for (let i = first - 1; i >= 0 && last === false; i--) last = of(byTime[i]);
    if (last !== false) context.moveTo(LEFT, plot.y(last));
    for (let i = first; i < times.length && times[i] < plot.to; i++) {
      const next = of(byTime[i]);
      if (next === false) continue;
      const x = plot.x(times[i]);
      if (last === false) context.moveTo(x, plot.y(next));
      else context.lineTo(x, plot.y(last));
      context.lineTo(x, plot.y(next));
      last = next;
    }
    if (last !== false) context.lineTo(LEFT + plot.width, plot.y(last));
  });
};

// The mark of a packet for the data of the direction shown, or -1.
const ZERO_WINDOW = 1 << 7;
const DUPLICATE_ACK = 1 << 4;
const markOf = (packet) => {
  if (packet.side === state.side) return packet.mark - 1;
  if (packet.flags & ZERO_WINDOW) return 10;
  return packet.flags & DUPLICATE_ACK ? 9 : -1;
};

const drawMarks = (plot, marks, packets, single, exact) => {
  const context = plot.context;
  const drawn = new Set();
  const [first, end] = visible(marks, plot.from, plot.to);
  const size = end - first > 300 ? 3 : 5;
  const put = (mark, x, y) => {
    // One of a kind within some pixels.
    const key = (mark * 1e4 + Math.round(x / 3)) * 1e4 + Math.round(y / 3);
    if (drawn.has(key)) return;
    drawn.add(key);
    glyph(context, plot, mark, x, y, mark === 9 ? 3 : size);
  };
  const marked = single ? packets.filter((packet) => markOf(packet) >= 0) : [];
  if (!exact) {
    for (let mark = marks.counts.length - 1; mark >= 0; mark--) {
      if (state.stevens && mark >= 9) continue;
      const counts = marks.counts[mark];
      for (let i = first; i < end; i++) {
        if (!counts[i]) continue;
        const until = marks.start[i] + marks.width;
        const inBin = (packet) =>
          packet.time >= marks.start[i] && packet.time < until && markOf(packet) === mark;
        if (single && marked.filter(inBin).length >= counts[i]) continue;
        put(mark, plot.x(marks.start[i] + marks.width / 2), plot.y(marks.seq.low[i]));
      }
    }
  }
  for (const packet of marked) {
    const mark = markOf(packet);
    if (state.stevens && mark >= 9) continue;
    put(mark, plot.x(packet.time), plot.y(packet.side === state.side ? packet.seq : packet.ack));
  }
};

const drawThroughput = (plot, _, from, to) => {
  plot.measure();
  const sent = averageExtremes(state.sent, from, to, plot.width);
  const goodput = averageExtremes(state.goodput, from, to, plot.width);
  let high = 0;
  for (const value of sent.high) high = Math.max(high, value);
  for (const value of goodput.high) high = Math.max(high, value);
  plot.begin(from, to, 0, high * 1.06, RATES);
  plot.area(sent, "data", 1.8);
  plot.area(goodput, "ack", 1.5);
  plot.end();
};

const drawRtt = (plot, bins, from, to) => {
  const { high } = range(bins.rtt, bins.rtt.seconds, from, to);
  plot.begin(from, to, 0, Math.max(high, 0) * 1.08, DELAYS);
  const packets = keptIn(from, to);
  const { single, exact } = detail(bins, packets, from, to, plot.width);
  if (!exact) {
    plot.context.globalAlpha = single ? 0.35 : 1;
    plot.bars(plot.runs(bins.rtt, bins.rtt.seconds), "data", 2);
    plot.context.globalAlpha = 1;
  }
  if (single) {
    plot.context.fillStyle = plot.colour("data");
    for (const { time, rtt, side } of packets) {
      if (side !== state.side && rtt >= 0) {
        plot.context.fillRect(plot.x(time) - 1.5, plot.y(rtt / 1e9) - 1.5, 3, 3);
      }
    }
  }
  plot.end();
};

const drawWindows = (plot, bins, from, to) => {
  const { acks, inFlight } = bins;
  const flight = range(inFlight, inFlight.value, from, to).high;
  const flightBefore = valueBefore(inFlight, inFlight.value.high, from);
  const windowBefore = valueBefore(acks, acks.window.high, from);
  const window = Math.max(range(acks, acks.window, from, to).high, windowBefore ?? 0);
  let high = Math.max(flight, flightBefore ?? 0);
  // A window far above what is in flight would flatten it.
  if (window > high) high = high > 0 ? Math.min(window, high * 4) : window;
  plot.begin(from, to, 0, Math.max(high, 1) * 1.08, BYTES);
  const packets = keptIn(from, to);
  if (detail(bins, packets, from, to, plot.width).exact) {
    exactSteps(plot, "data", [], ({ outstanding }) => outstanding[state.side] ?? false);
    exactSteps(plot, "window", [7, 3], (packet) => acknowledges(packet) && packet.window);
  } else {
    plot.band(plot.runs(inFlight, inFlight.value), "data", 1.5, [], flightBefore);
    plot.band(plot.runs(acks, acks.window), "window", 1.6, [7, 3], windowBefore);
  }
  if (window > plot.high) {
    const context = plot.context;
    context.fillStyle = plot.colour("window-text");
    context.textAlign = "right";
    context.textBaseline = "top";
    context.fillText(`window up to ${readable(window, BYTES)} ↑`, LEFT + plot.width - 4, TOP);
  }
  plot.end();
};
