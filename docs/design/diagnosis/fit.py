#!/usr/bin/env python3
"""Fits the terms of the posterior (crates/explain/diagnose/src/causes/weights.csv).

    truth="cargo bench -p longhaul-verify --bench truth -- --twin --set bulk"
    $truth --runs 10000 --seed 1 --export 1.csv
    $truth --runs 8000 --seed 2 --export 2.csv
    $truth --runs 8000 --seed 3 --bbr3 --export 3.csv
    (head -1 1.csv; tail -qn +2 1.csv 2.csv 3.csv) > rows.csv
    python3 docs/design/diagnosis/fit.py rows.csv crates/explain/diagnose/src/causes/weights.csv

and those of captures, from rows of runs that were also captured:

    cargo bench -p longhaul-verify --bench truth -- --twin --set bulk --runs 20000 --seed 1 \\
        --vantage capture-sender --export rows.csv
    python3 docs/design/diagnosis/fit.py rows.csv \\
        crates/explain/diagnose/src/causes/weights_of_captures.csv --captures

Needs numpy and scipy. The model is a multinomial logistic regression over hat functions:
for each statistic a continuous, piecewise linear term with knots at quantiles, and a
constant where the statistic is absent; and over hat functions of PAIRS pairs of statistics,
bilinear between PAIR_KNOTS x PAIR_KNOTS knots, nothing where either is absent. The pairs are
those that would lower the loss of the sums alone the most (one Newton step for each cell, as
FAST of Lou et al., KDD 2013, on the gradient of the loss). Penalties: PENALTY times the squared terms and
SMOOTHNESS times their squared second differences, per 1000 rows. Runs, not rows, are split
into those fitted to and those held out. A captured run counts TAUGHT for the limit that the
hosts' own samples give and the rest for its true limit.
"""

import csv
import sys

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix, hstack

KNOTS = 8
PAIRS = 60
# Pairs of the statistics that a receiver alone gives.
RECEIVER_PAIRS = 20
PAIR_KNOTS = 4
PAIR_PENALTY = 0.05
# Pairs that one statistic is part of, at most.
PAIRS_EACH = 6
PENALTY = 0.01
SMOOTHNESS = 0.1
HELD_OUT = 5  # every fifth run
ROUNDS = 260
# Statistics that other tools, older versions or other kernels do not have (with NEWER also a
# receiver's, rx_): a part of the rows is repeated without them, or their absence would seem to
# tell something, and what they tell would seem to be known.
NEWER = {
    "marked", "spurious_share", "ln_reorderings", "ln_segments_per_ack", "unscaled",
    "window_floor", "window_filled", "window_level", "ln_window_64k", "window_per_rtt", "unread",
}
OLDER = {"marked", "spurious_share", "ln_reorderings", "ln_segments_per_ack", "unscaled"}
# Those that results of iperf3 do not have, of iperf 2, and of a receiver of another tool.
IPERF3 = OLDER | {
    "rwnd_share", "sndbuf_share", "idle_share", "app_limited", "nothing_unsent", "mostly_sent",
    "starved", "unread", "of_pacing", "ack_q_ms", "ack_q_share", "rate_by_window_queued",
    "rtt_by_window_queued",
}
IPERF2 = IPERF3 | {
    "is_bbr", "is_reno", "window_filled", "at_window", "ln_window_64k", "window_floor",
    "window_level", "window_per_rtt", "small_requested", "rtt_by_window", "rate_by_window",
}
RECEIVER = {
    "is_bbr", "is_reno", "window_per_rtt", "rx_window_turned", "rx_window_floor",
    "rx_ln_window_64k", "rx_unread",
}
# What is absent in repeated rows, and the share of rows that are repeated so: of any vantage
# but a capture's, of a sender's, of a receiver alone.
REPEATED = (
    (OLDER, 0.15, ("full", "watch", "slow", "receiver")),
    (NEWER, 0.15, ("full", "watch", "slow", "receiver")),
    (IPERF3, 0.3, ("full", "slow")),
    (IPERF2, 0.2, ("full", "slow")),
    (RECEIVER, 0.3, ("receiver",)),
)
# Of a captured run's weight, the part for the limit named from the hosts' samples.
TAUGHT = 0.5
# Row weights by kind: the whole run decides what is named first.
WEIGHTS = {"whole": 1.0, "segment": 0.5, "window": 0.3}


def load(path):
    with open(path, newline="") as file:
        reader = csv.reader(file)
        header = next(reader)
        rows = list(reader)
    names = header[6:]
    meta = [row[:6] for row in rows]
    values = np.array(
        [[float(cell) if cell else np.nan for cell in row[6:]] for row in rows], dtype=np.float32
    )
    return names, meta, values


def knots_of(column):
    known = column[np.isfinite(column)]
    if len(known) < 50:
        return None
    quantiles = np.unique(np.quantile(known, np.linspace(0.01, 0.99, KNOTS)).round(4))
    return quantiles if len(quantiles) >= 2 else None


def design(values, knots):
    """Rows of hat functions; the first column of each statistic is `absent`."""
    rows, columns, data = [], [], []
    offset = 0
    for index, points in enumerate(knots):
        if points is None:
            continue
        column = values[:, index]
        known = np.isfinite(column)
        absent = np.nonzero(~known)[0]
        rows.append(absent)
        columns.append(np.full(len(absent), offset))
        data.append(np.ones(len(absent)))
        where = np.nonzero(known)[0]
        x = np.clip(column[where], points[0], points[-1])
        low = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
        share = (x - points[low]) / (points[low + 1] - points[low])
        rows += [where, where]
        columns += [offset + 1 + low, offset + 2 + low]
        data += [1 - share, share]
        offset += 1 + len(points)
    matrix = csr_matrix(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(values), offset),
    )
    return matrix.astype(np.float32)


def quartiles(column):
    """The knots of a statistic in pairs."""
    known = column[np.isfinite(column)]
    if len(known) < 50:
        return None
    points = np.unique(np.quantile(known, np.linspace(0.02, 0.98, PAIR_KNOTS)).round(4))
    return points if len(points) >= 2 else None


def hats(column, points):
    """The lower knot's index and the upper knot's share; rows without a value have none."""
    x = np.clip(np.nan_to_num(column), points[0], points[-1])
    low = np.clip(np.searchsorted(points, x, side="right") - 1, 0, len(points) - 2)
    return low, (x - points[low]) / (points[low + 1] - points[low])


def pair_design(values, pairs, points):
    rows, columns, data = [], [], []
    offset = 0
    for a, b in pairs:
        known = np.nonzero(np.isfinite(values[:, a]) & np.isfinite(values[:, b]))[0]
        (i, x), (j, y) = hats(values[known, a], points[a]), hats(values[known, b], points[b])
        width = len(points[b])
        for row, wx in ((i, 1 - x), (i + 1, x)):
            for column, wy in ((j, 1 - y), (j + 1, y)):
                rows.append(known)
                columns.append(offset + row * width + column)
                data.append(wx * wy)
        offset += len(points[a]) * width
    matrix = csr_matrix(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))),
        shape=(len(values), offset),
    )
    return matrix.astype(np.float32)


def choose_pairs(values, points, gradient, curvature, count):
    """The pairs whose cells would lower the loss the most, by one Newton step for each."""
    usable = [index for index, known in enumerate(points) if known is not None]
    cells = {}
    for index in usable:
        low, share = hats(values[:, index], points[index])
        nearest = low + (share > 0.5)
        cells[index] = np.where(np.isfinite(values[:, index]), nearest, -1)
    gains = []
    for place, a in enumerate(usable):
        for b in usable[place + 1 :]:
            known = (cells[a] >= 0) & (cells[b] >= 0)
            width = len(points[b])
            cell = cells[a][known] * width + cells[b][known]
            where = csr_matrix(
                (np.ones(len(cell), dtype=np.float32), (cell, np.nonzero(known)[0])),
                shape=(len(points[a]) * width, len(values)),
            )
            sums, bends = where @ gradient, where @ curvature
            gains.append(((sums**2 / (bends + 5.0)).sum(), a, b))
    gains.sort(reverse=True)
    chosen, uses = [], {}
    for _, a, b in gains:
        if len(chosen) < count and max(uses.get(a, 0), uses.get(b, 0)) < PAIRS_EACH:
            chosen.append((a, b))
            uses[a], uses[b] = uses.get(a, 0) + 1, uses.get(b, 0) + 1
    return chosen


def shares_of(labels, count):
    """Each row's limit, as shares of all limits."""
    return np.eye(count, dtype=np.float32)[labels]


def fit(matrix, target, weights, knots):
    """The first columns are those of `knots`; the others are of pairs. `target` has each row's
    limits, as shares."""
    count = target.shape[1]
    features = matrix.shape[1]
    transposed = matrix.T.tocsr()
    total = weights.sum()
    spans, offset = [], 0
    for points in knots:
        if points is not None:
            spans.append((offset + 1, offset + 1 + len(points)))
            offset += 1 + len(points)
    scale = np.full((features, 1), PENALTY * 1e-3, dtype=np.float32)
    scale[offset:] = PAIR_PENALTY * 1e-3

    def loss(flat):
        terms = flat[: features * count].reshape(features, count).astype(np.float32)
        prior = flat[features * count :]
        scores = matrix @ terms + prior
        scores -= scores.max(axis=1, keepdims=True)
        odds = np.exp(scores)
        sums = odds.sum(axis=1, keepdims=True)
        probability = odds / sums
        value = -(weights[:, None] * target * (scores - np.log(sums))).sum() / total
        error = (probability - target) * (weights / total)[:, None]
        gradient = transposed @ error
        value += (scale * terms**2).sum()
        gradient = gradient + 2 * scale * terms
        for first, last in spans:
            bend = terms[first : last - 2] - 2 * terms[first + 1 : last - 1] + terms[first + 2 : last]
            smooth = SMOOTHNESS * 1e-3
            value += smooth * (bend**2).sum()
            gradient[first : last - 2] += 2 * smooth * bend
            gradient[first + 1 : last - 1] -= 4 * smooth * bend
            gradient[first + 2 : last] += 2 * smooth * bend
        return float(value), np.concatenate([gradient.ravel(), error.sum(axis=0)]).astype(np.float64)

    start = np.zeros(features * count + count)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": ROUNDS})
    print(f"{found.nit} rounds, loss {found.fun:.4f}")
    return found.x[: features * count].reshape(features, count), found.x[features * count :]


def probabilities(matrix, terms, prior):
    scores = matrix @ terms + prior
    scores -= scores.max(axis=1, keepdims=True)
    odds = np.exp(scores)
    return odds / odds.sum(axis=1, keepdims=True)


def calibration_error(confidence, right, bins=10):
    order = np.argsort(confidence)
    error = 0.0
    for part in np.array_split(order, bins):
        gap = right[part].mean() - confidence[part].mean()
        error += abs(gap) * len(part) / len(order)
    return error


def report(name, p, labels, families, limits):
    best = p.argmax(axis=1)
    right = best == labels
    top = p.max(axis=1)
    log = -np.log(np.maximum(p[np.arange(len(labels)), labels], 0.001)).mean()
    print(
        f"{name}: {len(labels)} rows, right {right.mean():.3f}, log score {log:.3f}, "
        f"calibration error {calibration_error(top, right):.3f}"
    )
    for level in (0.9, 0.95, 0.98, 0.99):
        sure = top >= level
        if sure.any():
            print(f"  p >= {level}: {sure.mean():.2f} of rows, wrong {1 - right[sure].mean():.4f}")
    return best


def summary(held, p, labels, families, vantages, kinds, limits):
    """How often held-out rows are right."""
    for vantage in sorted(set(vantages)):
        for kind in WEIGHTS:
            rows = held & (vantages == vantage) & (kinds == kind)
            if rows.any():
                best = report(f"{vantage} {kind}", p[rows], labels[rows], families[rows], limits)
                if kind == "whole":
                    right = best == labels[rows]
                    for family in sorted(set(families[rows])):
                        of = families[rows] == family
                        wrong = [
                            f"{limits[a]}>{limits[b]}"
                            for a, b in zip(labels[rows][of & ~right], best[of & ~right])
                        ]
                        common = sorted(set(wrong), key=wrong.count, reverse=True)[:4]
                        text = ", ".join(f"{name} {wrong.count(name)}" for name in common)
                        print(f"    {family:<22} {right[of].mean():.3f} of {of.sum()}  {text}")


def main():
    captures = "--captures" in sys.argv
    names, meta, values = load(sys.argv[1])
    of = [index for index, row in enumerate(meta) if row[2].startswith("capture") == captures]
    meta, values = [meta[index] for index in of], values[of]
    limits = sorted({row[4] for row in meta})
    place = {limit: index for index, limit in enumerate(limits)}
    labels = np.array([place[row[4]] for row in meta])
    # The limit named is that of a whole run.
    named = np.array(
        [place.get(row[5], place[row[4]]) if row[1] == "whole" else place[row[4]] for row in meta]
    )
    runs = np.array([int(row[0]) for row in meta])
    kinds = np.array([row[1] for row in meta])
    vantages = np.array([row[2] for row in meta])
    families = np.array([row[3] for row in meta])
    weights = np.array([WEIGHTS[kind] for kind in kinds], dtype=np.float32)
    draws = np.random.default_rng(1)
    parts = []
    for names_absent, part, points in REPEATED:
        chosen = np.nonzero((draws.random(len(values)) < part) & np.isin(vantages, points))[0]
        copy = values[chosen].copy()
        for index, name in enumerate(names):
            if name in names_absent or (names_absent is NEWER and name.startswith("rx_")):
                copy[:, index] = np.nan
        parts.append((chosen, copy))
    rows = np.concatenate([np.arange(len(values))] + [chosen for chosen, _ in parts])
    values = np.concatenate([values] + [copy for _, copy in parts])
    vantages = np.concatenate([vantages] + [np.full(len(chosen), "older") for chosen, _ in parts])
    labels, named, runs, kinds, families, weights = (
        column[rows] for column in (labels, named, runs, kinds, families, weights)
    )
    target = shares_of(labels, len(limits))
    if captures:
        target = (1 - TAUGHT) * target + TAUGHT * shares_of(named, len(limits))
    held = runs % HELD_OUT == 0
    knots = [knots_of(values[~held, index]) for index in range(len(names))]
    matrix = design(values, knots)
    print(f"{len(values)} rows, {len(np.unique(runs))} runs, {matrix.shape[1]} terms, {len(limits)} limits")
    levels = [quartiles(values[~held, index]) for index in range(len(names))]
    pairs = []
    # By the rows as seen by a test, and by a receiver alone; or of captures at either.
    seen = ("capture-sender", "capture-receiver") if captures else ("full", "receiver")
    for vantage, count in zip(seen, (PAIRS, RECEIVER_PAIRS)):
        rows = np.nonzero(~held & (vantages == vantage))[0]
        terms, prior = fit(matrix[rows], target[rows], weights[rows], knots)
        p = probabilities(matrix[rows], terms, prior)
        error = target[rows] - p
        each = weights[rows, None]
        chosen = choose_pairs(values[rows], levels, error * each, p * (1 - p) * each, count)
        pairs += [pair for pair in chosen if pair not in pairs]
    print(", ".join(f"{names[a]} x {names[b]}" for a, b in pairs))
    both = hstack([matrix, pair_design(values, pairs, levels)]).tocsr()
    terms, prior = fit(both[~held], target[~held], weights[~held], knots)
    matrix = both
    p = probabilities(matrix, terms, prior)
    summary(held, p, labels, families, vantages, kinds, limits)
    if captures:
        for vantage in seen:
            rows = held & (vantages == vantage) & (kinds == "whole")
            agrees = (p[rows].argmax(axis=1) == named[rows]).mean()
            print(f"{vantage}: as named from the hosts' samples {agrees:.3f}")
    with open(sys.argv[2], "w") as out:
        for limit, index in place.items():
            out.write(f"prior,{limit},{prior[index]:.3f}\n")
        offset = 0
        for name, points in zip(names, knots):
            if points is None:
                continue
            out.write(f"knots,{name}," + ",".join(f"{x:.4g}" for x in points) + "\n")
            for limit, index in place.items():
                row = terms[offset : offset + 1 + len(points), index]
                out.write(f"weights,{name},{limit}," + ",".join(f"{x:.3f}" for x in row) + "\n")
            offset += 1 + len(points)
        for a, b in pairs:
            of = [",".join(f"{x:.4g}" for x in levels[index]) for index in (a, b)]
            out.write(f"pair,{names[a]},{names[b]},{of[0]},;,{of[1]}\n")
            size = len(levels[a]) * len(levels[b])
            for limit, index in place.items():
                row = terms[offset : offset + size, index]
                out.write(f"pair-weights,{limit}," + ",".join(f"{x:.3f}" for x in row) + "\n")
            offset += size


if __name__ == "__main__":
    main()
