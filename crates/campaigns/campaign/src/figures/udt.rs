//! Acknowledgements and NAKs of UDT, from the sender's samples.

use record::{Sample, Stream};

/// What a sender's peer sent it back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Feedback {
    /// Data packets acknowledged.
    packets: u64,
    acks: u64,
    light_acks: u64,
    /// NAKs received.
    pub(super) naks: u64,
}

impl Feedback {
    /// Of all streams; `None` of other protocols, of the native mode, which has no NAKs, and of
    /// measurements that do not count light acknowledgements.
    pub(super) fn of(streams: &[Stream]) -> Option<Self> {
        let mut all = Feedback::default();
        for stream in streams {
            let (first, last) = (stream.sender.first()?, stream.sender.last()?);
            let counted = |of: fn(&Sample) -> Option<u64>| {
                Some(of(last)?.saturating_sub(of(first).unwrap_or(0)))
            };
            let light = counted(|sample| sample.light_acks.map(u64::from))?;
            all.naks += counted(|sample| sample.naks)?;
            let payload = u64::from(last.mss_bytes).max(1);
            all.packets += last.acked_bytes.saturating_sub(first.acked_bytes) / payload;
            all.light_acks += light;
            all.acks += counted(|sample| sample.acks.map(u64::from))?.saturating_sub(light);
        }
        (!streams.is_empty()).then_some(all)
    }

    /// Full acknowledgements per data packet.
    pub(super) fn acks_per_packet(&self) -> Option<f64> {
        self.per_packet(self.acks)
    }

    /// Light ones.
    pub(super) fn light_acks_per_packet(&self) -> Option<f64> {
        self.per_packet(self.light_acks)
    }

    fn per_packet(&self, count: u64) -> Option<f64> {
        (self.packets > 0).then(|| count as f64 / self.packets as f64)
    }
}

/// NAKs received in each whole second, over all streams; empty without any.
pub(super) fn naks_per_second(streams: &[Stream]) -> Vec<u64> {
    let mut seconds: Vec<u64> = Vec::new();
    for pair in streams.iter().flat_map(|stream| stream.sender.windows(2)) {
        let received = pair[1].naks.unwrap_or(0).saturating_sub(pair[0].naks.unwrap_or(0));
        // The second in which most of the time between the two samples is.
        let second = f64::midpoint(pair[0].t_s, pair[1].t_s);
        if received > 0 && (0.0..super::series::LONGEST_S).contains(&second) {
            let second = second as usize;
            seconds.resize(seconds.len().max(second + 1), 0);
            seconds[second] += received;
        }
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(t_s: f64, packets: u64, acks: u32, light_acks: u32, naks: u64) -> Sample {
        Sample {
            t_s,
            mss_bytes: 1456,
            acked_bytes: packets * 1456,
            acks: Some(acks),
            light_acks: Some(light_acks),
            naks: Some(naks),
            ..Sample::default()
        }
    }

    fn stream(sender: Vec<Sample>) -> Stream {
        Stream { sender, ..Stream::default() }
    }

    #[test]
    fn acknowledgements_are_counted_per_packet_after_the_warm_up() {
        let one = stream(vec![sample(0.0, 500, 50, 40, 7), sample(1.0, 1500, 160, 140, 9)]);
        let two = stream(vec![sample(0.0, 0, 0, 0, 0), sample(1.0, 1000, 110, 100, 0)]);
        let found = Feedback::of(&[one.clone(), two]).unwrap();
        assert_eq!(found.naks, 2);
        // 10 of 110 are full ones, of 1000 packets, in both.
        assert_eq!(found.acks_per_packet(), Some(0.01));
        assert_eq!(found.light_acks_per_packet(), Some(0.1));
        assert_eq!(Feedback::of(&[]), None);
        let mut native = one.clone();
        native.sender.iter_mut().for_each(|sample| sample.naks = None);
        assert_eq!(Feedback::of(&[native]), None);
        let mut earlier = one;
        earlier.sender.iter_mut().for_each(|sample| sample.light_acks = None);
        assert_eq!(Feedback::of(&[earlier]), None, "of a version that did not count light ones");
    }

    #[test]
    fn naks_belong_to_their_second() {
        let samples = [(0.0, 4), (0.9, 4), (1.9, 5), (3.1, 5), (3.2, 8)];
        let samples = samples.map(|(t_s, naks)| sample(t_s, 0, 0, 0, naks));
        let one = stream(samples.to_vec());
        assert_eq!(naks_per_second(&[one.clone(), one]), [0, 2, 0, 6]);
        assert!(naks_per_second(&[stream(vec![sample(0.0, 0, 0, 0, 9)])]).is_empty());
        let wrong = [sample(0.0, 0, 0, 0, 0), sample(f64::NAN, 0, 0, 0, 9)];
        assert!(naks_per_second(&[stream(wrong.to_vec())]).is_empty());
    }
}
