// The moment under the pointer, or the keyboard's cursor, in all graphs; and what is there.

const FLAG_LETTERS = ["F", "S", "R", "P", "A", "U", "E", "C"];
const flagText = (flags) => FLAG_LETTERS.filter((_, bit) => flags & (1 << bit)).join("");
const analysisText = (flags) =>
  capture.flags.filter((_, bit) => flags & (1 << bit)).map((name) => name.replaceAll("_", " "));

// The kind of a retransmission, and the flags by Wireshark's rules.
const packetEvents = (packet) => {
  const flags = analysisText(packet.flags);
  const events = packet.mark > 0 && packet.mark <= 5 ? [capture.marks[packet.mark - 1]] : [];
  if (flags.length) events.push(`Wireshark: ${flags.join(", ")}`);
  return events;
};

const packetText = (packet) => {
  const { ends } = state.stream;
  const lines = [
    `packet ${grouped(packet.number)}  ${packet.time.toFixed(6)} s`,
    `${ends[packet.side]} → ${ends[1 - packet.side]}  [${flagText(packet.tcpFlags)}]`,
  ];
  const parts = [`seq ${grouped(packet.seq)}`, `len ${grouped(packet.len)}`];
  if (packet.ack >= 0) parts.push(`ack ${grouped(packet.ack)}`);
  parts.push(`win ${grouped(packet.window)}`);
  lines.push(parts.join("  "));
  const sack = packet.blocks.map(([left, right]) => `${grouped(left)}–${grouped(right)}`).join(", ");
  if (sack) lines.push(`SACK ${sack}`);
  if (packet.inFlight >= 0) lines.push(`${readable(packet.inFlight, BYTES)} in flight`);
  if (packet.rtt >= 0) lines.push(`RTT ${readable(packet.rtt / 1e9, DELAYS)}`);
  const events = packetEvents(packet);
  if (events.length) lines.push(events.join(", "));
  return lines.join("\n");
};

// The bin of a series at a moment, or -1.
const binAt = (series, moment) => {
  const i = lowerBound(series.start, moment - series.width + 1e-12);
  return i < series.start.length && series.start[i] <= moment ? i : -1;
};

const between = (low, high, units) =>
  low === high ? readable(low, units) : `${readable(low, units)} to ${readable(high, units)}`;

const numbers = (packets, i) =>
  packets.low[i] === packets.high[i]
    ? `packet ${grouped(packets.low[i])}`
    : `packets ${grouped(packets.low[i])} to ${grouped(packets.high[i])}`;

// What all bins have at a moment.
const describe = (moment) => {
  const { width, data, acks, marks, rtt, inFlight } = bins();
  const lines = [`${moment.toFixed(decimals(width / 10))} s, ${readable(width, DELAYS)}`];
  const sent = binAt(data, moment);
  if (sent >= 0) {
    lines.push(`data: ${numbers(data.packets, sent)}, ${grouped(data.segments[sent])} segments, ` +
      readable(data.bytes[sent], BYTES));
  }
  const answered = binAt(acks, moment);
  if (answered >= 0) {
    lines.push(`ACKs: ${numbers(acks.packets, answered)}, ${grouped(acks.segments[answered])} segments, ` +
      `${readable(acks.delivered[answered], BYTES)} delivered`);
  }
  const at = binAt(marks, moment);
  if (at >= 0) {
    const names = capture.marks.map((name, mark) => [name, marks.counts[mark][at]]);
    lines.push(names.filter(([, count]) => count).map(([name, count]) => `${grouped(count)} × ${name}`).join(", "));
  }
  const delay = binAt(rtt, moment);
  if (delay >= 0) lines.push(`RTT ${between(rtt.seconds.low[delay], rtt.seconds.high[delay], DELAYS)}`);
  const flight = binAt(inFlight, moment);
  if (flight >= 0) {
    lines.push(`in flight ${between(inFlight.value.low[flight], inFlight.value.high[flight], BYTES)}`);
  }
  if (answered >= 0) lines.push(`window ${between(acks.window.low[answered], acks.window.high[answered], BYTES)}`);
  lines.push(`sent ${readable(averageAt(state.sent, moment), RATES)}, ` +
    `goodput ${readable(averageAt(state.goodput, moment), RATES)} (average of ${$("average-text").textContent})`);
  return lines.join("\n");
};

// The kept packet nearest to the pointer, within some pixels.
const packetNear = (graph, x, y) => {
  const { plot, figure } = graph;
  const kind = figure.dataset.graph;
  const near = keptIn(plot.timeAt(x - 7), plot.timeAt(x + 7));
  let best = null;
  let least = 9;
  for (const packet of near.slice(0, 2000)) {
    let away = Math.abs(plot.x(packet.time) - x);
    if (kind === "sequence") {
      const own = packet.side === state.side;
      const bottom = plot.y(own ? packet.seq : packet.ack);
      const top = plot.y(own ? packet.seq + packet.len : packet.ack);
      away = Math.hypot(away, y > bottom ? y - bottom : y < top ? top - y : 0);
    } else if (kind === "rtt") {
      away = packet.rtt >= 0 && packet.side !== state.side
        ? Math.hypot(away, plot.y(packet.rtt / 1e9) - y) : Infinity;
    } else away = Infinity;
    if (away < least) [best, least] = [packet, away];
  }
  return best;
};

const showCursor = (pointed = null) => {
  const { from, to } = state.view;
  for (const graph of graphs) {
    const { hair, tip, plot } = graph;
    const visible = state.cursor !== null && state.cursor >= from && state.cursor <= to;
    hair.hidden = !visible;
    if (!visible || pointed?.graph !== graph) tip.hidden = true;
    if (visible) hair.style.transform = `translateX(${plot.x(state.cursor)}px)`;
  }
  if (!pointed || state.cursor === null) return;
  const { graph, x, y } = pointed;
  const { tip, plot } = graph;
  const packet = packetNear(graph, x, y);
  tip.textContent = packet ? packetText(packet) : describe(state.cursor);
  tip.hidden = false;
  const flip = x + 18 + tip.offsetWidth > plot.outer.width;
  tip.style.left = `${Math.max(0, flip ? x - 18 - tip.offsetWidth : x + 18)}px`;
  tip.style.top = `${Math.max(0, Math.min(y + 12, plot.outer.height - tip.offsetHeight))}px`;
};

// For screen readers: what the keyboard moved to.
const say = (text) => {
  $("said").textContent = text;
};

const moveCursor = (pixels) => {
  const { from, to } = state.view;
  const { plot } = graphs[0];
  const step = ((to - from) / plot.width) * pixels;
  state.cursor = Math.min(to, Math.max(from, (state.cursor ?? (from + to) / 2) + step));
  const at = graphs.find(({ plot }) => plot.canvas === document.activeElement) ?? graphs[0];
  showCursor({ graph: at, x: at.plot.x(state.cursor), y: 0 });
  say(at.tip.textContent);
};
