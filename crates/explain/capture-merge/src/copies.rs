//! Which copy is which, of packets that are all the same.
//!
//! Copies keep their order, which is all that can be known of them; where the numbers
//! differ, some were lost on the way or made there, and the delays decide.

/// The delays of unmistakable packets in one direction, by the time at the capture they
/// passed first.
#[derive(Debug, Default)]
pub(crate) struct ExpectedDelays {
    /// Time and delay in ns, sorted.
    samples: Vec<(i64, i64)>,
    least_ns: i64,
    most_ns: i64,
    slack_ns: i64,
}

/// Delays that are smaller than the least one by less than this are possible, in ns: what
/// an estimate of the clock may miss. A quarter of the spread of the delays adds to it.
const SLACK_NS: i64 = 1_000_000;

impl ExpectedDelays {
    pub(crate) fn of(mut samples: Vec<(i64, i64)>) -> Self {
        samples.sort_unstable();
        let least_ns = samples.iter().map(|it| it.1).min().unwrap_or(i64::MIN / 4);
        let most_ns = samples.iter().map(|it| it.1).max().unwrap_or(i64::MAX / 4);
        let mut delays: Vec<i64> = samples.iter().map(|it| it.1).collect();
        let middle = delays.len() / 2;
        let median =
            if delays.is_empty() { least_ns } else { *delays.select_nth_unstable(middle).1 };
        let slack_ns = SLACK_NS + median.saturating_sub(least_ns) / 4;
        ExpectedDelays { samples, least_ns, most_ns, slack_ns }
    }

    /// The delay of the packet that was sent nearest to this time; 0 without one.
    pub(crate) fn at(&self, time_ns: i64) -> i64 {
        let place = self.samples.partition_point(|it| it.0 < time_ns);
        let near = [place.checked_sub(1), Some(place)].into_iter().flatten();
        let near = near.filter_map(|place| self.samples.get(place));
        near.min_by_key(|it| it.0.abs_diff(time_ns)).map_or(0, |it| it.1)
    }

    /// Whether a packet can have had this delay.
    fn is_possible(&self, delay_ns: i64) -> bool {
        delay_ns >= self.least_ns.saturating_sub(self.slack_ns)
    }

    /// Whether others had such a delay.
    pub(crate) fn is_usual(&self, delay_ns: i64) -> bool {
        self.is_possible(delay_ns) && delay_ns <= self.most_ns.saturating_add(self.slack_ns)
    }
}

/// Combinations of copies that are all weighed up; more are paired one after the other.
const WEIGHED: usize = 4096;

/// Pairs of copies, by their places. Both lists of times are sorted. `is_certain`: what
/// each list has once is the same packet, whatever the clocks say.
pub(crate) fn align(
    sent: &[i64],
    came: &[i64],
    is_certain: bool,
    expected: &ExpectedDelays,
) -> Vec<(usize, usize)> {
    match (sent, came) {
        ([_], [_]) if is_certain => vec![(0, 0)],
        ([one], [other]) => {
            if expected.is_possible(other.saturating_sub(*one)) {
                vec![(0, 0)]
            } else {
                Vec::new()
            }
        }
        _ if sent.len().saturating_mul(came.len()) <= WEIGHED => weigh(sent, came, expected),
        _ => in_order(sent, came, expected),
    }
}

/// What a pair costs: with losses, how far its delay is from the usual one; with duplicates,
/// the delay, as the first that arrives is the packet and the others are its duplicates.
fn cost(sent: i64, delay: i64, has_duplicates: bool, expected: &ExpectedDelays) -> i64 {
    if has_duplicates { delay } else { delay.saturating_sub(expected.at(sent)).saturating_abs() }
}

/// As many pairs as are possible, and of these the ones that cost least: dynamic
/// programming over both lists.
fn weigh(sent: &[i64], came: &[i64], expected: &ExpectedDelays) -> Vec<(usize, usize)> {
    let width = came.len() + 1;
    let has_duplicates = came.len() > sent.len();
    // Pairs and their cost of the rests of both lists, from the end.
    let mut best = vec![(0_u32, 0_i64); (sent.len() + 1) * width];
    let better = |a: (u32, i64), b: (u32, i64)| {
        if (a.0, std::cmp::Reverse(a.1)) >= (b.0, std::cmp::Reverse(b.1)) { a } else { b }
    };
    let paired = |best: &[(u32, i64)], i: usize, j: usize| {
        let delay = came[j].saturating_sub(sent[i]);
        expected.is_possible(delay).then(|| {
            let rest = best[(i + 1) * width + j + 1];
            let cost = cost(sent[i], delay, has_duplicates, expected);
            (rest.0 + 1, rest.1.saturating_add(cost))
        })
    };
    for i in (0..sent.len()).rev() {
        for j in (0..came.len()).rev() {
            let without = better(best[(i + 1) * width + j], best[i * width + j + 1]);
            let with = paired(&best, i, j).map_or(without, |with| better(with, without));
            best[i * width + j] = with;
        }
    }
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < sent.len() && j < came.len() {
        let here = best[i * width + j];
        if paired(&best, i, j) == Some(here) {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if best[(i + 1) * width + j] == here {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// The same one after the other, for long lists.
fn in_order(sent: &[i64], came: &[i64], expected: &ExpectedDelays) -> Vec<(usize, usize)> {
    let (mut i, mut j, mut pairs) = (0, 0, Vec::new());
    while i < sent.len() && j < came.len() {
        let delay = came[j].saturating_sub(sent[i]);
        if !expected.is_possible(delay) {
            j += 1;
            continue;
        }
        let left = (sent.len() - i, came.len() - j);
        let next = sent.get(i + 1).map(|next| (*next, came[j].saturating_sub(*next)));
        let cost = |sent, delay| cost(sent, delay, false, expected);
        let is_lost = left.0 > left.1
            && next.is_some_and(|(next, its)| {
                expected.is_possible(its) && cost(next, its) < cost(sent[i], delay)
            });
        if is_lost {
            i += 1;
            continue;
        }
        pairs.push((i, j));
        (i, j) = (i + 1, j + 1);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// A path of 20 ms, give or take one.
    fn path() -> ExpectedDelays {
        ExpectedDelays::of((0..100).map(|i| (i * MS * 10, (20 + i % 2) * MS)).collect())
    }

    fn ms(times: &[i64]) -> Vec<i64> {
        times.iter().map(|it| it * MS).collect()
    }

    #[test]
    fn the_copy_that_fits_is_the_one() {
        let path = path();
        for (sent, came, pairs) in [
            (&[0, 300][..], &[20][..], &[(0, 0)][..]),
            (&[0, 300], &[320], &[(1, 0)]),
            (&[0, 300, 600], &[21, 620], &[(0, 0), (2, 1)]),
            // A duplicate: the first that arrives counts.
            (&[0], &[20, 21, 45], &[(0, 0)]),
            (&[0, 300], &[20, 22, 320], &[(0, 0), (1, 2)]),
            // Before any packet can arrive: none of these.
            (&[100], &[50], &[]),
            (&[100], &[118, 120], &[(0, 1)]),
        ] {
            assert_eq!(align(&ms(sent), &ms(came), false, &path), pairs, "{sent:?} {came:?}");
        }
    }

    #[test]
    fn many_copies_are_paired_in_order() {
        let path = path();
        let sent: Vec<i64> = (0..5000).map(|i| i * 40 * MS).collect();
        let came: Vec<i64> = sent.iter().step_by(2).map(|it| it + 20 * MS).collect();
        let pairs = align(&sent, &came, false, &path);
        assert_eq!(pairs.len(), 2500);
        let wrong = pairs.iter().filter(|(i, j)| *i != 2 * j).count();
        assert_eq!(wrong, 0);
    }
}
