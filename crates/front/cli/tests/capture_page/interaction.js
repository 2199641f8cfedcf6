// Body of a function: does what a user does, and returns what is wrong.
const wrong = [];
let checked = 0;
const check = (name, holds) => {
  checked++;
  if (!holds) wrong.push(name);
};
const near = (a, b) => Math.abs(a - b) <= 1e-9 + 1e-6 * Math.abs(b);
const canvas = (kind) => document.querySelector(`figure[data-graph=${kind}] canvas`);
// Pixels that are neither transparent nor the grid.
const painted = (kind) => {
  const { context } = graphs.find(({ figure }) => figure.dataset.graph === kind).plot;
  const { data } = context.getImageData(0, 0, context.canvas.width, context.canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 100 && Math.max(data[i], data[i + 1], data[i + 2]) - Math.min(data[i], data[i + 1], data[i + 2]) > 60) count++;
  }
  return count;
};
const key = (name, target = document.body, more = {}) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...more }));
const pointer = (kind, type, x, y, more = {}) => {
  const box = canvas(kind).getBoundingClientRect();
  canvas(kind).dispatchEvent(new PointerEvent(type, { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true, ...more }));
};
// Made-up pointers cannot be captured.
for (const { plot } of graphs) plot.canvas.setPointerCapture = () => {};
const width = () => state.view.to - state.view.from;
const whole = width();

check("two streams", capture.streams.length === 2);
check("the largest first", state.stream.number === 0 && state.side === 0);
for (const kind of ["sequence", "throughput", "rtt", "windows"]) {
  check(`${kind} is drawn`, painted(kind) > 100);
}
const card = () => [...document.querySelectorAll(".stream-card")].filter((card) => !card.hidden);
check("the card of the stream", card().length === 1 && card()[0].dataset.stream === "0");
check("its loss, its rate, folded prose", /\b20 of /.test(card()[0].textContent) &&
  /bit\/s/.test(card()[0].textContent) && !card()[0].querySelector("details").open);
const { marks, data, acks } = bins();
const total = (values) => values.reduce((a, b) => a + b, 0);
check("segments", total(data.segments) === 20_021);
check("payload", total(data.bytes) === 20_020_000);
check("delivered", total(acks.delivered) === 19_999_000);
check("retransmissions", total(marks.counts.slice(0, 6).map(total)) === 20);
check("legend", /20/.test($("marks").textContent) && /duplicate ACK/.test($("marks").textContent));
check("goodput", near(averageAt(state.goodput, 2), 40e6));

key("+");
check("+ zooms in", near(width(), whole / 2));
const before = state.view.from;
key("ArrowRight");
check("an arrow pans", state.view.from > before && near(width(), whole / 2));
key("-");
check("- zooms out", near(width(), whole));
key("+");
key("0");
check("0 resets", near(width(), whole) && near(state.view.from, state.home.from));
key("ArrowLeft");
check("the view stays within", near(state.view.from, state.home.from));
const eventTimes = [...marks.start].filter((_, i) => marks.counts.some((counts, mark) => mark < 9 && counts[i]))
  .map((start) => start + marks.width / 2);
$("next").click();
draw();
check("Event › begins with the first", near(state.cursor, eventTimes[0]));
pointer("sequence", "pointermove", 400, 100);
pointer("sequence", "pointerleave", 400, 100);
$("next").click();
check("and goes on after the pointer left", near(state.cursor, eventTimes.find((time) => time > eventTimes[0] + 1e-9)));
$("reset").click();
$("previous").click();
check("‹ Event begins with the last", near(state.cursor, eventTimes.at(-1)));
$("reset").click();
key("n");
draw();
check("n goes to an event", state.cursor !== null && width() < whole / 10);
check("with its packets", keptIn(state.view.from, state.view.to).some((packet) => packet.mark > 0));
check("and says so", /×|packet/.test($("said").textContent));
const first = state.cursor;
key("n");
check("n goes on", state.cursor > first);
key("p");
check("p goes back", near(state.cursor, first));
key("ArrowRight", document.body, { shiftKey: true });
check("shift moves the cursor", state.cursor > first);
check("a hair line in every graph", graphs.every(({ hair }) => !hair.hidden));

key("0");
draw();
canvas("rtt").dispatchEvent(new WheelEvent("wheel", { deltaY: -200, clientX: canvas("rtt").getBoundingClientRect().left + 500, bubbles: true, cancelable: true }));
check("the wheel zooms", width() < whole * 0.8);
key("0");
draw();
const { plot } = graphs[0];
const [left, right] = [plot.timeAt(300), plot.timeAt(500)];
pointer("sequence", "pointerdown", 300, 100);
pointer("sequence", "pointermove", 400, 100);
check("a selection is shown", !document.querySelector(".sequence .selection").hidden);
pointer("sequence", "pointermove", 500, 100);
pointer("sequence", "pointerup", 500, 100);
check("dragging selects a time span", near(state.view.from, left) && near(state.view.to, right));
draw();
pointer("sequence", "pointerdown", 300, 100, { shiftKey: true });
pointer("sequence", "pointermove", 400, 100, { shiftKey: true });
pointer("sequence", "pointerup", 400, 100, { shiftKey: true });
check("with Shift it pans", near(state.view.to - state.view.from, right - left) && state.view.from < left);

// A retransmission under the pointer.
key("0");
const packet = state.packets.all.find(({ mark }) => mark > 0);
setView(packet.time - 0.002, packet.time + 0.002);
draw();
pointer("sequence", "pointermove", plot.x(packet.time), plot.y(packet.seq + 500));
const tip = document.querySelector(".sequence .tip");
check("the packet under the pointer", !tip.hidden && tip.textContent.includes(`packet ${grouped(packet.number)}`));
showPackets();
check("packets are listed", /event/.test($("packet-rows").innerHTML) && $("packet-rows").rows.length > 10);
check("single packets are drawn", painted("sequence") > 50);
pointer("throughput", "pointermove", 400, 50);
check("bins have the numbers of packets", /packet/.test(document.querySelector(".throughput .tip").textContent));
pointer("throughput", "pointerleave", 400, 50);
check("the cursor goes with the pointer", state.cursor === null && graphs.every(({ hair }) => hair.hidden));

key("s");
draw();
check("Stevens", state.stevens && painted("sequence") > 30);
key("s");
$("average").value = 0;
$("average").dispatchEvent(new Event("input"));
check("an average over 25 ms", state.average === 0.025 && /0.025/.test($("average-text").textContent));
key("d");
check("no data in the other direction", state.side === 0 && /sent no data/.test($("message").textContent));

$("search").value = "40001";
$("search").dispatchEvent(new Event("input"));
check("search", $("conversation-rows").rows.length === 1);
document.querySelector("#conversation-rows button").click();
check("its card", card().length === 1 && card()[0].dataset.stream === "1");
check("a conversation's graphs", state.stream.number === 1 && state.stream.kept === state.stream.packetCount);
draw();
check("all of its packets", painted("sequence") > 50 && painted("windows") > 50);
// The width of a phone, at every zoom: three lines of the grid.
for (const [from, to] of [[0, 9], [0, 4.08], [3.21, 3.2199], [1e6, 1e6 + 2e-4], [-0.04, 0.9]]) {
  const step = stepWithin(from, to, 228 / 110);
  const lines = Math.floor(to / step + 1e-9) - Math.ceil(from / step - 1e-9) + 1;
  check(`three ticks from ${from} to ${to}: ${lines}`, lines >= 3 && lines <= 7);
}
dispatchEvent(new Event("beforeprint"));
const paper = getComputedStyle(document.documentElement).getPropertyValue("--text");
check("dark on paper", document.documentElement.classList.contains("print") && paper.trim() === "#1b1e23");
dispatchEvent(new Event("afterprint"));
check("and as before after it", !document.documentElement.classList.contains("print"));
const focusable = [...document.querySelectorAll("button, select, input, canvas[tabindex], .scroll[tabindex], article:not([hidden]) summary")];
check("reachable by Tab", focusable.length > 15 && focusable.every((element) => element.tabIndex >= 0));
check("names for screen readers", focusable.every((element) => element.textContent || element.ariaLabel || element.labels?.length || element.title));
return { wrong, checked, errors };
