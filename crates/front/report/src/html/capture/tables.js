// The packets of the visible time span, and the conversations.

const MAX_PACKETS = 300;
const MAX_CONVERSATIONS = 100;

const cell = (row, text, tag = "td") => {
  const element = document.createElement(tag);
  element.textContent = text;
  row.append(element);
  return element;
};

const showMessage = (text) => {
  $("message").textContent = text;
};

const showPackets = () => {
  const { from, to } = state.view;
  const kept = keptIn(from, to).sort((a, b) => a.ordinal - b.ordinal);
  const bin = bins();
  const counts = packetsIn(bin, from, to);
  const all = state.stream.kept === state.stream.packetCount;
  $("packet-count").textContent = all
    ? `${grouped(kept.length)} packets in this time span.`
    : `About ${grouped(Math.max(kept.length, counts.data + counts.acks))} packets in this time span, ` +
      `${grouped(kept.length)} of them in this page: those around events, at either end, and samples in between.`;
  const body = $("packet-rows");
  body.textContent = "";
  const fragment = document.createDocumentFragment();
  let last = null;
  for (const packet of kept.slice(0, MAX_PACKETS)) {
    if (last && packet.ordinal > last.ordinal + 1) {
      const gap = document.createElement("tr");
      gap.className = "gap";
      cell(gap, `${grouped(packet.ordinal - last.ordinal - 1)} packets not in this page`).colSpan = 9;
      fragment.append(gap);
    }
    last = packet;
    const row = document.createElement("tr");
    cell(row, String(packet.number));
    cell(row, packet.time.toFixed(6));
    cell(row, state.stream.ends[packet.side]);
    cell(row, flagText(packet.tcpFlags));
    cell(row, String(packet.seq));
    cell(row, String(packet.len));
    cell(row, packet.ack >= 0 ? String(packet.ack) : "");
    cell(row, String(packet.window));
    const blocks = packet.blocks.map(([left, right]) => `${left}–${right}`).join(" ");
    const notes = packetEvents(packet);
    if (blocks) notes.push(`SACK ${blocks}`);
    if (packet.rtt >= 0) notes.push(`RTT ${readable(packet.rtt / 1e9, DELAYS)}`);
    cell(row, notes.join(", "));
    if (packetEvents(packet).length) row.className = "event";
    row.addEventListener("pointerenter", () => {
      state.cursor = packet.time;
      showCursor();
    });
    fragment.append(row);
  }
  if (kept.length > MAX_PACKETS) {
    const more = document.createElement("tr");
    more.className = "gap";
    cell(more, `${grouped(kept.length - MAX_PACKETS)} more: zoom in`).colSpan = 9;
    fragment.append(more);
  }
  body.append(fragment);
};

// Once the view has come to rest.
let packetTimer = 0;
const laterPackets = () => {
  clearTimeout(packetTimer);
  packetTimer = setTimeout(showPackets, 120);
};

const conversationText = ([protocol, stream, a, b]) => `${protocol} ${stream ?? ""} ${a} ${b}`.toLowerCase();
const conversationTexts = capture.conversations.map(conversationText);

const showConversations = () => {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = capture.conversations.filter((_, i) =>
    words.every((word) => conversationTexts[i].includes(word)));
  const hidden = capture.conversationCount - capture.conversations.length;
  $("conversation-count").textContent =
    `${grouped(found.length)} of ${grouped(capture.conversations.length)} conversations` +
    (found.length > MAX_CONVERSATIONS ? `; the ${MAX_CONVERSATIONS} with the most bytes are shown` : "") +
    (hidden > 0 ? `; ${grouped(hidden)} smaller ones are not in this page` : "");
  const body = $("conversation-rows");
  body.textContent = "";
  for (const conversation of found.slice(0, MAX_CONVERSATIONS)) {
    const [protocol, stream, a, b, start, duration, framesA, bytesA, framesB, bytesB, retransmitted] = conversation;
    const row = document.createElement("tr");
    const first = cell(row, "", "th");
    first.scope = "row";
    if (stream !== null && capture.streams.some(({ number }) => number === stream)) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${protocol} ${stream}`;
      button.dataset.stream = stream;
      button.addEventListener("click", () => {
        setStream(stream);
        $("graphs").scrollIntoView({ block: "start" });
      });
      first.append(button);
    } else first.textContent = stream === null ? protocol : `${protocol} ${stream}`;
    cell(row, a);
    cell(row, b);
    cell(row, start.toFixed(6));
    cell(row, duration.toFixed(6));
    const rate = (bytes) => (duration > 0 ? readable((bytes * 8) / duration, RATES) : "–");
    for (const [frames, bytes] of [[framesA, bytesA], [framesB, bytesB]]) {
      cell(row, grouped(frames));
      cell(row, readable(bytes, BYTES));
      cell(row, rate(bytes));
    }
    cell(row, retransmitted === null ? "" : grouped(retransmitted));
    body.append(row);
  }
  markRows();
};

// Marks the stream whose graphs are shown.
const markRows = () => {
  for (const button of document.querySelectorAll("button[data-stream]")) {
    const shown = Number(button.dataset.stream) === state.stream?.number;
    button.setAttribute("aria-pressed", String(shown));
  }
};

$("search").addEventListener("input", showConversations);
showConversations();
if (capture.streams.length) {
  listen();
  setStream(capture.streams[0].number);
  draw();
}
