//! Streams that are aborted, or whose receiver has left.

use super::*;

#[test]
fn an_aborted_stream_discards_what_still_arrives() {
    let mut pair = Pair::new();
    let id = pair.open();
    pair.settle();
    pair.ends[1].send(id, 16 << 10);
    pair.ends[0].session.reset(id);
    pair.pass(1, usize::MAX, usize::MAX);
    pair.pass(0, usize::MAX, usize::MAX);
    pair.ends[1].session.reset(id);
    pair.pass(1, usize::MAX, usize::MAX);
    for end in &pair.ends {
        assert!(end.session.streams.is_empty() && end.session.active == 0);
    }
}

/// What the frames of one end lead to at the other.
fn events(from: &mut Session, to: &mut Session) -> Vec<Event> {
    let mut events = Vec::new();
    while from.unsent() > 0 {
        let input = from.outgoing().to_vec();
        from.transmitted(input.len());
        let mut rest = &input[..];
        while !rest.is_empty() {
            let received = to.receive(rest).unwrap();
            rest = &rest[received.used..];
            events.extend(received.event);
        }
    }
    events
}

#[test]
fn a_reset_after_the_end_of_a_direction_is_passed_on_once() {
    for of_near in [true, false] {
        let mut pair = Pair::new();
        let id = pair.open();
        pair.settle();
        let [near, far] = &mut pair.ends;
        let (one, other) = if of_near { (near, far) } else { (far, near) };
        let (one, other) = (&mut one.session, &mut other.session);
        one.send(id, &[0; 1000]).unwrap();
        one.end(id);
        assert_eq!(events(one, other), [Event::Data(id, 1000), Event::End(id)]);
        other.send(id, &[0; 1000]).unwrap();
        // The other end has not delivered what it got.
        one.reset(id);
        one.reset(id);
        assert_eq!(events(one, other), [Event::Reset(id)]);
        other.reset(id);
        assert_eq!(events(other, one), [Event::Data(id, 1000), Event::Reset(id)]);
        one.reset(id);
        assert_eq!(events(one, other), []);
        for session in [one, other] {
            assert!(session.streams.is_empty() && session.active == 0 && session.borrowed == 0);
        }
    }
}

#[test]
fn a_reset_that_crosses_the_end_of_the_other_direction_is_no_error() {
    for is_delivered in [true, false] {
        let mut pair = Pair::new();
        let id = pair.open();
        pair.settle();
        let [near, far] = &mut pair.ends;
        let (near, far) = (&mut near.session, &mut far.session);
        near.send(id, &[0; 1000]).unwrap();
        near.end(id);
        assert_eq!(events(near, far), [Event::Data(id, 1000), Event::End(id)]);
        if is_delivered {
            far.consumed(id, 1000);
        }
        near.reset(id);
        far.end(id);
        // Far has nothing left of a stream that was delivered as a whole.
        let expected = if is_delivered { vec![] } else { vec![Event::Reset(id)] };
        assert_eq!(events(near, far), expected);
        assert_eq!(events(far, near), [Event::End(id)]);
        for session in [near, far] {
            assert!(session.streams.is_empty() && session.active == 0);
        }
    }
}

#[test]
fn a_near_that_takes_nothing_more_has_far_end_its_direction() {
    let mut pair = Pair::new();
    let id = pair.open();
    pair.settle();
    let [near, far] = &mut pair.ends;
    near.session.stop_sending(id);
    assert_eq!(near.session.unsent(), 0, "its own direction has not ended");
    near.session.end(id);
    near.session.stop_sending(id);
    far.session.send(id, &[0; 1000]).unwrap();
    let mut input = near.transmit(usize::MAX);
    let mut events = Vec::new();
    while !input.is_empty() {
        let received = far.session.receive(&input).unwrap();
        events.extend(received.event);
        input.drain(..received.used);
    }
    assert_eq!(events, [Event::End(id), Event::StopSending(id)]);
    far.session.end(id);
    // One that is late is no error.
    assert_eq!(far.session.receive(&Frame::StopSending(id).encode()).unwrap().event, None);
    let input = far.transmit(usize::MAX);
    near.records.clear();
    let mut rest = &input[..];
    while !rest.is_empty() {
        let received = near.session.receive(rest).unwrap();
        rest = &rest[received.used..];
    }
    for end in &pair.ends {
        assert!(end.session.streams.is_empty() && end.session.active == 0);
    }
}
