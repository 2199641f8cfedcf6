// From bins to columns of pixels: the extremes of all bins within a column, so that no peak
// disappears at any zoom.

// Positions of the bins that overlap the time span.
const visible = (series, from, to) => [
  lowerBound(series.start, from - series.width),
  lowerBound(series.start, to),
];

// The least `low` and the greatest `high` of each column; NaN where there is no bin. A bin
// wider than a column fills all of its columns.
const extremes = (series, span, from, to, width) => {
  const low = new Float64Array(width).fill(NaN);
  const high = new Float64Array(width).fill(NaN);
  const scale = width / (to - from);
  const [first, end] = visible(series, from, to);
  for (let i = first; i < end; i++) {
    const left = Math.max(0, Math.floor((series.start[i] - from) * scale));
    const right = Math.ceil((series.start[i] + series.width - from) * scale) - 1;
    for (let x = left; x <= Math.min(width - 1, Math.max(left, right)); x++) {
      if (!(low[x] <= span.low[i])) low[x] = span.low[i];
      if (!(high[x] >= span.high[i])) high[x] = span.high[i];
    }
  }
  return { low, high };
};

// The greatest `high` (and least `low`) over what is visible.
const range = (series, span, from, to) => {
  const [first, end] = visible(series, from, to);
  let low = Infinity;
  let high = -Infinity;
  for (let i = first; i < end; i++) {
    if (span.low[i] < low) low = span.low[i];
    if (span.high[i] > high) high = span.high[i];
  }
  return { low, high };
};

// Moving average of `bytes` over the `window` seconds before each moment, in bit/s. Bytes are
// spread evenly over their bin, so the average is linear between these moments: where a bin
// begins or ends, and a window later.
const movingAverage = (series, bytes, window) => {
  const count = series.start.length;
  const total = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) total[i + 1] = total[i] + bytes[i];
  let moments = new Float64Array(4 * count);
  for (let i = 0; i < count; i++) {
    const begin = series.start[i];
    moments.set([begin, begin + series.width, begin + window, begin + series.width + window], 4 * i);
  }
  moments = moments.sort().filter((moment, i, all) => i === 0 || moment > all[i - 1] + 1e-9);
  // Bytes until a moment; moments come in order.
  const until = () => {
    let i = 0;
    return (moment) => {
      while (i < count && series.start[i] + series.width <= moment) i++;
      if (i === count) return total[count];
      const share = (moment - series.start[i]) / series.width;
      return total[i] + bytes[i] * Math.min(1, Math.max(0, share));
    };
  };
  const now = until();
  const before = until();
  const rate = new Float64Array(moments.length);
  for (let i = 0; i < moments.length; i++) {
    rate[i] = Math.max(0, ((now(moments[i]) - before(moments[i] - window)) * 8) / window);
  }
  return { moments, rate };
};

// The average at a moment.
const averageAt = ({ moments, rate }, moment) => {
  const i = lowerBound(moments, moment);
  if (i === 0 || i === moments.length) return i < moments.length && moments[i] === moment ? rate[i] : 0;
  const share = (moment - moments[i - 1]) / (moments[i] - moments[i - 1]);
  return rate[i - 1] + (rate[i] - rate[i - 1]) * share;
};

// Extremes of the average in each column.
const averageExtremes = (average, from, to, width) => {
  const low = new Float64Array(width);
  const high = new Float64Array(width);
  const scale = width / (to - from);
  for (let x = 0; x < width; x++) {
    const ends = [averageAt(average, from + x / scale), averageAt(average, from + (x + 1) / scale)];
    low[x] = Math.min(...ends);
    high[x] = Math.max(...ends);
  }
  const { moments, rate } = average;
  for (let i = lowerBound(moments, from); i < moments.length && moments[i] < to; i++) {
    const x = Math.min(width - 1, Math.floor((moments[i] - from) * scale));
    if (rate[i] < low[x]) low[x] = rate[i];
    if (rate[i] > high[x]) high[x] = rate[i];
  }
  return { low, high };
};
