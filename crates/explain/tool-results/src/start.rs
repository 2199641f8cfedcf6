//! The sample at the start of a connection: every counter at zero, the state of the first
//! sample that was taken.

use record::{ReceiverSample, Sample};

/// Of the sender.
pub(crate) fn of_sender(first: &Sample) -> Sample {
    Sample {
        t_s: 0.0,
        written_bytes: 0,
        acked_bytes: 0,
        delivered_bytes: 0,
        ssthresh_bytes: None,
        retransmits: 0,
        busy_us: 0,
        rwnd_limited_us: 0,
        sndbuf_limited_us: 0,
        ce_delivered: first.ce_delivered.map(|_| 0),
        dsack_duplicates: first.dsack_duplicates.map(|_| 0),
        reorderings: first.reorderings.map(|_| 0),
        acks: first.acks.map(|_| 0),
        ..*first
    }
}

/// Of the receiver.
pub(crate) fn of_receiver(first: &ReceiverSample) -> ReceiverSample {
    ReceiverSample {
        t_s: 0.0,
        received_bytes: 0,
        segments: first.segments.map(|_| 0),
        out_of_order: first.out_of_order.map(|_| 0),
        ..*first
    }
}
