// Pointer, wheel and keyboard.

const listen = () => {
  for (const graph of graphs) {
    const { plot, figure } = graph;
    const { canvas } = plot;
    const box = figure.querySelector(".selection");
    let start = null;
    const at = (event) => {
      const outer = canvas.getBoundingClientRect();
      return { x: event.clientX - outer.left, y: event.clientY - outer.top };
    };
    const inside = ({ x }) => x >= LEFT - 6 && x <= LEFT + plot.width + 6;

    canvas.addEventListener("wheel", (event) => {
      // Beside the plot, and with other keys, the page scrolls.
      if (!inside(at(event)) || event.metaKey) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        pan((event.deltaX || event.deltaY) / 1000);
      } else zoomAt(plot.timeAt(at(event).x), Math.exp(Math.sign(event.deltaY) * Math.min(0.4, Math.abs(event.deltaY) / 400)));
    }, { passive: false });

    canvas.addEventListener("pointerdown", (event) => {
      if (event.button > 1 || !inside(at(event))) return;
      const pans = state.drag === "pan" || event.shiftKey || event.button === 1;
      start = { ...at(event), pans, view: { ...state.view }, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });

    canvas.addEventListener("pointermove", (event) => {
      const point = at(event);
      if (start) {
        start.moved ||= Math.abs(point.x - start.x) > 4;
        if (start.pans && start.moved) {
          const by = ((start.x - point.x) / plot.width) * (start.view.to - start.view.from);
          setView(start.view.from + by, start.view.to + by);
          return;
        }
        if (start.moved) {
          const [left, right] = [start.x, point.x].sort((a, b) => a - b)
            .map((x) => Math.min(LEFT + plot.width, Math.max(LEFT, x)));
          box.hidden = false;
          box.style.left = `${left}px`;
          box.style.width = `${right - left}px`;
        }
      }
      state.cursor = inside(point) ? plot.timeAt(point.x) : null;
      showCursor({ graph, ...point });
    });

    const finish = (event) => {
      if (!start) return;
      const point = at(event);
      if (start.moved && !start.pans && event.type === "pointerup") {
        const [from, to] = [start.x, point.x].sort((a, b) => a - b)
          .map((x) => plot.timeAt(Math.min(LEFT + plot.width, Math.max(LEFT, x))));
        setView(from, to);
      }
      box.hidden = true;
      start = null;
    };
    canvas.addEventListener("pointerup", finish);
    canvas.addEventListener("pointercancel", finish);
    canvas.addEventListener("dblclick", () => zoom(0.5));
    canvas.addEventListener("pointerleave", () => {
      if (start) return;
      state.cursor = null;
      showCursor();
    });
  }

  const KEYS = {
    ArrowLeft: (event) => (event.shiftKey ? moveCursor(-10) : pan(-0.2)),
    ArrowRight: (event) => (event.shiftKey ? moveCursor(10) : pan(0.2)),
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    _: () => zoom(2),
    0: reset,
    Home: () => setView(state.home.from, state.home.from + state.view.to - state.view.from),
    End: () => setView(state.home.to - (state.view.to - state.view.from), state.home.to),
    n: () => toEvent(1),
    p: () => toEvent(-1),
    d: () => $("direction").click(),
    s: () => $("stevens").click(),
    ",": () => moveCursor(-1),
    ".": () => moveCursor(1),
  };

  document.addEventListener("keydown", (event) => {
    const { target } = event;
    if (event.ctrlKey || event.altKey || event.metaKey || !state.stream) return;
    // Controls have keys of their own, and so have tables that scroll.
    if (target.closest?.("input:not([type=checkbox]), select, textarea, .scroll")) return;
    const isArrow = event.key.startsWith("Arrow") || event.key === "Home" || event.key === "End";
    if (isArrow && target !== document.body && target.tagName !== "CANVAS") return;
    const act = KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act(event);
    if (!event.shiftKey && !"np,.".includes(event.key)) say($("span").textContent);
  });

  const onClick = (id, act) => $(id).addEventListener("click", act);
  onClick("zoom-in", () => zoom(0.5));
  onClick("zoom-out", () => zoom(2));
  onClick("earlier", () => pan(-0.5));
  onClick("later", () => pan(0.5));
  onClick("reset", reset);
  onClick("next", () => toEvent(1));
  onClick("previous", () => toEvent(-1));
  onClick("direction", () => {
    const other = 1 - state.side;
    if (state.stream.payload[other] > 0) setSide(other);
    else say(`${state.stream.ends[other]} sent no data.`);
    showMessage(state.stream.payload[other] > 0 || state.side === other ? "" : `${state.stream.ends[other]} sent no data.`);
  });
  onClick("stevens", () => {
    state.stevens = !state.stevens;
    $("stevens").setAttribute("aria-pressed", String(state.stevens));
    schedule();
  });
  onClick("drag", () => {
    state.drag = state.drag === "zoom" ? "pan" : "zoom";
    $("drag").setAttribute("aria-pressed", String(state.drag === "pan"));
  });
  $("stream").addEventListener("change", (event) => setStream(Number(event.target.value)));
  $("average").addEventListener("input", (event) => {
    setAverage(averageOf(Number(event.target.value)));
    schedule();
  });
  window.addEventListener("resize", schedule);
  // On paper the colours are those of the light theme.
  const print = (begins) => () => {
    document.documentElement.classList.toggle("print", begins);
    legend();
    draw();
  };
  window.addEventListener("beforeprint", print(true));
  window.addEventListener("afterprint", print(false));
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    legend();
    schedule();
  });
};
