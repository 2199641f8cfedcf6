//! Groups of equal keys in two lists, by sorting: as fast for equal keys as for
//! different ones, whoever made them.

/// Sorts both lists and calls `each` for every key that both have, with its entries in
/// the order of their numbers.
pub(crate) fn equal<K: Ord>(
    a: &mut [(K, u32)],
    b: &mut [(K, u32)],
    mut each: impl FnMut(&[(K, u32)], &[(K, u32)]),
) {
    a.sort_unstable();
    b.sort_unstable();
    let (mut a, mut b) = (&*a, &*b);
    while let (Some((key, _)), Some((other, _))) = (a.first(), b.first()) {
        match key.cmp(other) {
            std::cmp::Ordering::Less => a = &a[1..],
            std::cmp::Ordering::Greater => b = &b[1..],
            std::cmp::Ordering::Equal => {
                let (of_a, rest_a) = a.split_at(run(a));
                let (of_b, rest_b) = b.split_at(run(b));
                each(of_a, of_b);
                (a, b) = (rest_a, rest_b);
            }
        }
    }
}

/// Entries at the start that have one key.
fn run<K: PartialEq>(list: &[(K, u32)]) -> usize {
    let Some((first, _)) = list.first() else { return 0 };
    list.iter().take_while(|(key, _)| key == first).count()
}

/// The pairs of entries whose key each list has once.
pub(crate) fn unique<K: Ord>(a: &mut [(K, u32)], b: &mut [(K, u32)]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    equal(a, b, |of_a, of_b| {
        if let ([(_, a)], [(_, b)]) = (of_a, of_b) {
            pairs.push((*a, *b));
        }
    });
    pairs
}

/// The value that is there most often, and how often.
pub(crate) fn mode(mut values: Vec<u32>) -> Option<(u32, usize)> {
    values.sort_unstable();
    let runs = values.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).and_then(|run| Some((*run.first()?, run.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_those_of_both() {
        let mut a = [(5, 0), (1, 1), (5, 2), (9, 3)];
        let mut b = [(9, 7), (5, 8), (2, 9)];
        let mut groups = Vec::new();
        equal(&mut a, &mut b, |a, b| groups.push((a.to_vec(), b.to_vec())));
        assert_eq!(groups, [(vec![(5, 0), (5, 2)], vec![(5, 8)]), (vec![(9, 3)], vec![(9, 7)])]);
        assert_eq!(unique(&mut a, &mut b), [(3, 7)]);
    }

    #[test]
    fn the_mode_of_nothing_is_none() {
        assert_eq!(mode(vec![]), None);
        assert_eq!(mode(vec![3, 1, 3, 2]), Some((3, 2)));
    }
}
