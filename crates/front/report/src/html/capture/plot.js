// One graph on a canvas: axes, lines, bars and marks.

const BYTES = [[1, "B"], [1e3, "kB"], [1e6, "MB"], [1e9, "GB"], [1e12, "TB"], [1e15, "PB"]];
const RATES = [[1, "bit/s"], [1e3, "kbit/s"], [1e6, "Mbit/s"], [1e9, "Gbit/s"], [1e12, "Tbit/s"]];
const DELAYS = [[1e-6, "µs"], [1e-3, "ms"], [1, "s"]];

const unitOf = (value, units) => units.findLast(([scale]) => Math.abs(value) >= scale) ?? units[0];

// A value with three digits and its unit.
const readable = (value, units) => {
  const [scale, unit] = unitOf(value, units);
  const scaled = value / scale;
  const digits = scale === units[0][0] || scaled >= 99.95 ? 0 : scaled >= 9.995 ? 1 : 2;
  return `${scaled.toFixed(digits)} ${unit}`;
};

// With a narrow space between thousands.
const grouped = (value) => Math.round(value).toLocaleString("en-US").replaceAll(",", "\u202f");

// A round step, so that there are about `want` of them.
const stepOf = (length, want) => {
  const raw = length / want;
  const ten = 10 ** Math.floor(Math.log10(raw));
  return ten * ([1, 2, 5].find((factor) => factor * ten >= raw * 0.999) ?? 10);
};

// Like stepOf, but the largest step of which at least three multiples lie between two values.
const stepWithin = (low, high, want) => {
  const count = (step) => Math.floor(high / step + 1e-9) - Math.ceil(low / step - 1e-9) + 1;
  let step = stepOf(high - low, want);
  for (let tries = 0; tries < 6 && count(step) < 3; tries++) step = stepOf(step / 2.5, 1);
  return step;
};

const decimals = (step) => Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));

const LEFT = 96;
const RIGHT = 30;
const TOP = 12;
const BOTTOM = 26;
// Pixels from which on a bin is drawn as one, and single packets are drawn.
const WIDE = 3;

class Plot {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.colours = {};
  }

  // Takes the size and the colours of the page.
  measure() {
    const box = this.canvas.getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    this.outer = { width: Math.max(200, box.width), height: Math.max(80, box.height) };
    this.width = Math.floor(this.outer.width - LEFT - RIGHT);
    this.height = this.outer.height - TOP - BOTTOM;
    const [width, height] = [this.outer.width * ratio, this.outer.height * ratio].map(Math.round);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(document.documentElement);
    this.colour = (name) => (this.colours[name] ??= style.getPropertyValue(`--${name}`).trim());
    this.colours = {};
  }

  // Clears and draws both axes; y goes from `low` to `high` in `units`.
  begin(from, to, low, high, units) {
    this.measure();
    this.from = from;
    this.to = to;
    // At least what numbers that large can tell apart.
    const least = Math.max(Math.abs(low) * 1e-9, high > low ? 0 : units[0][0]);
    high = Math.max(high > low ? high : low, low + least);
    Object.assign(this, { low, high, units });
    const context = this.context;
    context.clearRect(0, 0, this.outer.width, this.outer.height);
    context.font = `12px ${this.colour("sans")}`;
    context.lineWidth = 1;
    context.fillStyle = this.colour("muted");
    context.strokeStyle = this.colour("grid");
    const [scale, unit] = unitOf(Math.max(Math.abs(low), Math.abs(high)), units);
    const step = stepWithin(low / scale, high / scale, Math.max(2, this.height / 52));
    // Far from zero, a few bytes apart: all digits instead of a long fraction.
    const label = (value) =>
      units === BYTES && decimals(step) > 3
        ? grouped(value * scale)
        : `${value.toFixed(decimals(step))} ${unit}`;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.beginPath();
    for (let n = Math.ceil(low / scale / step - 1e-9); n * step * scale <= high; n++) {
      const y = Math.round(this.y(n * step * scale)) + 0.5;
      context.moveTo(LEFT, y);
      context.lineTo(LEFT + this.width, y);
      context.fillText(label(n * step), LEFT - 8, y);
    }
    const stepX = stepWithin(from, to, Math.max(2, this.width / 110));
    let free = -Infinity;
    context.textAlign = "center";
    context.textBaseline = "top";
    for (let n = Math.ceil(from / stepX - 1e-9); n * stepX <= to; n++) {
      const x = Math.round(this.x(n * stepX)) + 0.5;
      context.moveTo(x, TOP);
      context.lineTo(x, TOP + this.height);
      // Far zoomed in, on a narrow screen, not every label has room.
      const text = `${(n * stepX).toFixed(decimals(stepX))} s`;
      const half = context.measureText(text).width / 2;
      if (x - half < free) continue;
      free = x + half + 6;
      context.fillText(text, x, TOP + this.height + 7);
    }
    context.stroke();
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP - 4, this.width, this.height + 8);
    context.clip();
  }

  end() {
    this.context.restore();
  }

  x(time) {
    return LEFT + ((time - this.from) / (this.to - this.from)) * this.width;
  }

  // Far outside of the plot it makes no difference, but dashes take time.
  y(value) {
    const share = (value - this.low) / (this.high - this.low);
    return TOP + this.height * (1 - Math.min(1.5, Math.max(-0.5, share)));
  }

  timeAt(x) {
    return this.from + ((x - LEFT) / this.width) * (this.to - this.from);
  }

  stroke(name, width, dash, path) {
    const context = this.context;
    context.strokeStyle = this.colour(name);
    context.lineWidth = width;
    context.setLineDash(dash);
    context.beginPath();
    path(context);
    context.stroke();
    context.setLineDash([]);
  }

  // What to draw of a series of bins: [left, right, low, high]. Bins that are wide are drawn
  // one by one, narrow ones by their extremes in each column of pixels.
  runs(series, span) {
    const { from, to, width } = this;
    if ((series.width / (to - from)) * width >= WIDE) {
      const [first, end] = visible(series, from, to);
      return Array.from({ length: end - first }, (_, n) => {
        const i = first + n;
        const start = series.start[i];
        return [this.x(start), this.x(start + series.width), span.low[i], span.high[i]];
      });
    }
    const { low, high } = extremes(series, span, from, to, width);
    const runs = [];
    for (let i = 0; i < width; i++) {
      if (!Number.isNaN(low[i])) runs.push([LEFT + i, LEFT + i + 1, low[i], high[i]]);
    }
    return runs;
  }

  // A bar from low to high, at least `least` pixels high.
  bars(runs, name, least) {
    const context = this.context;
    context.fillStyle = this.colour(name);
    for (const [left, right, low, high] of runs) {
      const bottom = this.y(low);
      const height = Math.max(least, bottom - this.y(high));
      context.fillRect(left, bottom - height, right - left, height);
    }
  }

  // A line that keeps its value until it changes, and goes through both extremes of each run.
  // `before` is the value at the left edge.
  steps(runs, name, width, dash, before) {
    this.stroke(name, width, dash, (context) => {
      let last = before;
      if (last !== undefined) context.moveTo(LEFT, this.y(last));
      for (const [left, right, low, high] of runs) {
        // Upwards, unless all of it is below.
        const [one, other] = last !== undefined && high < last ? [high, low] : [low, high];
        if (last === undefined) context.moveTo(left, this.y(one));
        else if (last !== one) context.lineTo(left, this.y(last));
        context.lineTo(left, this.y(one));
        context.lineTo(right, this.y(other));
        last = other;
      }
      if (last !== undefined) context.lineTo(LEFT + this.width, this.y(last));
    });
  }

  // A line along the upper extremes, and a band down to the lower ones.
  band(runs, name, width, dash, before) {
    this.context.globalAlpha = 0.3;
    this.bars(runs, name, 0);
    this.context.globalAlpha = 1;
    this.steps(runs.map(([left, right, , high]) => [left, right, high, high]), name, width, dash, before);
  }

  // A line through both extremes of each column, with its area.
  area({ low, high }, name, width) {
    const context = this.context;
    const path = () => {
      context.beginPath();
      context.moveTo(LEFT, this.y(high[0]));
      for (let i = 0; i < low.length; i++) {
        const x = LEFT + i + 0.5;
        context.lineTo(x, this.y(high[i]));
        if (high[i] !== low[i]) context.lineTo(x, this.y(low[i]));
      }
    };
    if (width > 1.7) {
      path();
      context.lineTo(LEFT + this.width, this.y(0));
      context.lineTo(LEFT, this.y(0));
      context.globalAlpha = 0.1;
      context.fillStyle = this.colour(name);
      context.fill();
      context.globalAlpha = 1;
    }
    path();
    context.strokeStyle = this.colour(name);
    context.lineWidth = width;
    context.lineJoin = "round";
    context.stroke();
  }
}

// Shape and colour of each mark, by its position in the list of names.
const GLYPHS = [
  ["triangle", true, "late"],
  ["triangle", false, "late"],
  ["diamond", true, "fast"],
  ["diamond", false, "fast"],
  ["square", true, "probe"],
  ["square", false, "probe"],
  ["circle", false, "disordered"],
  ["cross", false, "text"],
  ["plus", false, "window"],
  ["tick", false, "ack"],
  ["circle", true, "text"],
];

const glyph = (context, plot, mark, x, y, size = 5) => {
  const [shape, filled, name] = GLYPHS[mark];
  context.beginPath();
  if (shape === "triangle") {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y + size * 0.8);
    context.lineTo(x - size, y + size * 0.8);
    context.closePath();
  } else if (shape === "diamond") {
    context.moveTo(x, y - size);
    context.lineTo(x + size, y);
    context.lineTo(x, y + size);
    context.lineTo(x - size, y);
    context.closePath();
  } else if (shape === "square") context.rect(x - size * 0.8, y - size * 0.8, size * 1.6, size * 1.6);
  else if (shape === "circle") context.arc(x, y, size * 0.85, 0, 7);
  else if (shape === "tick") {
    context.moveTo(x, y - size);
    context.lineTo(x, y + size);
  } else {
    const far = shape === "cross" ? size * 0.8 : 0;
    context.moveTo(x - (far || size), y - far);
    context.lineTo(x + (far || size), y + far);
    context.moveTo(x - far, y + (far || size));
    context.lineTo(x + far, y - (far || size));
  }
  context.lineWidth = 1.6;
  context.strokeStyle = plot.colour(name);
  if (filled) {
    context.fillStyle = plot.colour(name);
    context.fill();
  } else if (!["tick", "cross", "plus"].includes(shape)) {
    context.fillStyle = plot.colour("card");
    context.fill();
  }
  context.stroke();
};
