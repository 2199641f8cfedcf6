//! Numbered places for sockets, sessions and flows.

/// A number is not used again in the round in which it was freed: an event of the old one may still
/// come.
pub(super) struct Slots<T> {
    all: Vec<Option<T>>,
    free: Vec<usize>,
    /// Freed in this round.
    freed: Vec<usize>,
}

impl<T> Slots<T> {
    pub(super) const fn new() -> Self {
        Slots { all: Vec::new(), free: Vec::new(), freed: Vec::new() }
    }

    pub(super) fn insert(&mut self, value: T) -> usize {
        let id = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() - 1
        });
        if let Some(place) = self.all.get_mut(id) {
            *place = Some(value);
        }
        id
    }

    pub(super) fn get(&mut self, id: usize) -> Option<&mut T> {
        self.all.get_mut(id)?.as_mut()
    }

    pub(super) fn remove(&mut self, id: usize) -> Option<T> {
        let value = self.all.get_mut(id)?.take()?;
        self.freed.push(id);
        Some(value)
    }

    /// A round begins.
    pub(super) fn reuse_freed(&mut self) {
        self.free.append(&mut self.freed);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.all.iter().enumerate().filter_map(|(id, value)| Some((id, value.as_ref()?)))
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.all.iter_mut().enumerate().filter_map(|(id, value)| Some((id, value.as_mut()?)))
    }

    /// The numbers in use.
    pub(super) fn ids(&self) -> Vec<usize> {
        self.iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_used_again_in_the_next_round() {
        let mut slots = Slots::new();
        for round in 0..100 {
            slots.reuse_freed();
            let ids = [slots.insert(round), slots.insert(-round)];
            assert_eq!(slots.remove(ids[0]), Some(round));
            assert_eq!(slots.remove(ids[0]), None);
            let other = slots.insert(7);
            assert!(!ids.contains(&other), "in the same round");
            assert_eq!(slots.iter().map(|(_, value)| *value).sum::<i32>(), 7 - round);
            assert_eq!((slots.remove(ids[1]), slots.remove(other)), (Some(-round), Some(7)));
        }
        assert_eq!((slots.all.len(), slots.ids()), (3, vec![]));
    }
}
