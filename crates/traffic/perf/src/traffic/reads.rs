//! How many bytes a call of a TCP receiver reads, into how large a buffer, and what wakes it.
//!
//! Each call costs a wake-up where the sender is on the same machine, so long reads cost less. A long
//! buffer, however, takes the place of the data in the CPU's caches, so where several streams are
//! read a long read goes [over](host::bulk::read_over) a short buffer. docs/design/traffic.md has the
//! measurements.

/// What iperf3 reads by default.
const SHORT: usize = 128 * 1024;
/// As much as a call of the sender writes ([`super::gather`]).
const LONG: usize = 512 * 1024;
/// What a long read of one of several streams goes over.
const SMALL_BUFFER: usize = 16 * 1024;

/// The reads of each of an end's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reads {
    /// Bytes of a call at most.
    pub(super) most: usize,
    /// Bytes of the buffer.
    buffer: usize,
    /// Whether a low-water mark is set where the rate allows it.
    pub(super) have_mark: bool,
}

impl Reads {
    /// Of data that is stored: a read must fit its buffer.
    pub(super) const fn stored() -> Self {
        Reads { most: SHORT, buffer: SHORT, have_mark: true }
    }

    /// Of data that is discarded, at an end that receives and sends so many streams.
    pub(super) const fn of(
        receiving: usize,
        sending: usize,
        within_host: bool,
        by_reference: bool,
    ) -> Self {
        let is_alone = receiving == 1 && sending == 0;
        // Senders and receivers take the cores from each other with every wake-up; data by
        // reference is in the cache before it is read.
        let is_long = is_alone || sending > 0 || within_host || by_reference;
        let (most, buffer) = match (is_alone, is_long) {
            (true, _) => (LONG, LONG),
            (false, true) => (LONG, SMALL_BUFFER),
            (false, false) => (SHORT, SHORT),
        };
        // Over loopback, several streams by reference are slower with a mark.
        let have_mark = is_alone || !within_host || !by_reference;
        Reads { most, buffer, have_mark }
    }

    /// The most memory that a stream's buffer takes at such an end, whether data is stored or not.
    pub(super) fn memory(receiving: usize, sending: usize) -> usize {
        Reads::of(receiving, sending, false, false).buffer.max(Reads::stored().buffer)
    }

    pub(super) fn buffer(self) -> Vec<u8> {
        vec![0; self.buffer]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_data_is_never_read_over() {
        let reads = Reads::stored();
        assert_eq!(reads.most, reads.buffer().len());
    }

    #[test]
    fn no_buffer_is_larger_than_what_is_charged_for_it() {
        for receiving in 1..=64 {
            for sending in [0, 1, 64] {
                for (within_host, by_reference) in
                    [(false, false), (false, true), (true, false), (true, true)]
                {
                    let reads = Reads::of(receiving, sending, within_host, by_reference);
                    assert!(reads.buffer().len() <= Reads::memory(receiving, sending));
                    assert!(reads.most <= LONG && reads.most.is_multiple_of(reads.buffer().len()));
                }
            }
        }
    }
}
