//! Messages survive any fragmentation, mask and cut of the bytes; any other bytes end in the same
//! error wherever they are cut.

use proptest::prelude::*;
use websocket::close::Close;
use websocket::frame::{self, Mask, Opcode};
use websocket::{CloseCode, Event, Limits, ProtocolError, Reader, Role};

const LIMITS: Limits = Limits { text_bytes: 1000, binary_frame_bytes: 70_000 };

/// A message as it was sent.
#[derive(Debug, Clone)]
enum Sent {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
}

fn messages() -> impl Strategy<Value = Sent> {
    let control = || proptest::collection::vec(any::<u8>(), 0..=125);
    prop_oneof![
        ".{0,200}".prop_map(Sent::Text),
        proptest::collection::vec(any::<u8>(), 0..2000).prop_map(Sent::Binary),
        Just(Sent::Binary(vec![7; 66_000])),
        control().prop_map(Sent::Ping),
        control().prop_map(Sent::Pong),
    ]
}

/// A frame that may be one of several.
fn fragment(opcode: Opcode, last: bool, payload: &[u8], mask: Option<Mask>) -> Vec<u8> {
    let mut bytes = frame::message(opcode, payload, mask);
    if !last {
        bytes[0] &= 0x7f;
    }
    bytes
}

/// The frames of a message, cut at those places, with a Ping between each.
fn frames(message: &Sent, cuts: &[usize], mask: Option<Mask>) -> (Vec<u8>, Vec<Event>) {
    let (opcode, payload) = match message {
        Sent::Text(text) => (Opcode::Text, text.as_bytes()),
        Sent::Binary(bytes) => (Opcode::Binary, bytes.as_slice()),
        Sent::Ping(bytes) => {
            return (frame::message(Opcode::Ping, bytes, mask), vec![Event::Ping(bytes.clone())]);
        }
        Sent::Pong(bytes) => {
            return (frame::message(Opcode::Pong, bytes, mask), vec![Event::Pong(bytes.clone())]);
        }
    };
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (payload.len() + 1)).collect();
    ends.sort_unstable();
    ends.push(payload.len());
    let (mut bytes, mut events, mut from) = (Vec::new(), Vec::new(), 0);
    for (number, &end) in ends.iter().enumerate() {
        let opcode = if number == 0 { opcode } else { Opcode::Continuation };
        let last = number + 1 == ends.len();
        bytes.extend(fragment(opcode, last, &payload[from..end], mask));
        if matches!(message, Sent::Binary(_)) && end > from {
            events.push(Event::Binary(end - from));
        }
        if !last {
            bytes.extend(frame::message(Opcode::Ping, &[number as u8], mask));
            events.push(Event::Ping(vec![number as u8]));
        }
        from = end;
    }
    events.push(match message {
        Sent::Text(text) => Event::Text(text.clone()),
        _ => Event::BinaryEnd,
    });
    (bytes, events)
}

/// Everything a reader says of bytes that arrive in such pieces, counts of bytes added up.
fn read(role: Role, bytes: &[u8], pieces: &[usize]) -> (Vec<Event>, Option<ProtocolError>) {
    let mut reader = Reader::new(role, LIMITS);
    let (mut events, mut rest) = (Vec::new(), bytes);
    let mut sizes = pieces.iter().copied().chain(std::iter::repeat(usize::MAX));
    while !rest.is_empty() {
        let size = sizes.next().unwrap_or(usize::MAX).clamp(1, rest.len());
        let (mut piece, after) = rest.split_at(size);
        rest = after;
        loop {
            match (reader.next(&mut piece), events.last_mut()) {
                (Ok(None), _) => break,
                (Ok(Some(Event::Binary(more))), Some(Event::Binary(sum))) => *sum += more,
                (Ok(Some(event)), _) => events.push(event),
                (Err(error), _) => {
                    assert_eq!(reader.next(&mut &b"\x81\0"[..]), Err(error), "an error stays");
                    return (events, Some(error));
                }
            }
        }
        assert!(piece.is_empty(), "bytes are left where nothing is received");
    }
    (events, None)
}

fn sums(events: Vec<Event>) -> Vec<Event> {
    let mut joined: Vec<Event> = Vec::new();
    for event in events {
        match (joined.last_mut(), event) {
            (Some(Event::Binary(sum)), Event::Binary(more)) => *sum += more,
            (_, event) => joined.push(event),
        }
    }
    joined
}

proptest! {
    #[test]
    fn messages_arrive_as_they_were_sent(
        sent in proptest::collection::vec((messages(), proptest::collection::vec(any::<usize>(), 0..4)), 0..8),
        mask in proptest::option::of(any::<Mask>()),
        pieces in proptest::collection::vec(1usize..300, 0..60),
    ) {
        let role = if mask.is_some() { Role::Server } else { Role::Client };
        let (mut bytes, mut expected) = (Vec::new(), Vec::new());
        for (message, cuts) in &sent {
            let (frames, events) = frames(message, cuts, mask);
            bytes.extend(frames);
            expected.extend(events);
        }
        bytes.extend(frame::close(CloseCode::NORMAL, "bye", mask));
        bytes.extend([0xff; 9]);
        expected.push(Event::Close(Close { code: Some(CloseCode::NORMAL), reason: "bye".into() }));
        let (events, error) = read(role, &bytes, &pieces);
        prop_assert_eq!(error, None);
        prop_assert_eq!(events, sums(expected));
    }

    #[test]
    fn cuts_make_no_difference(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..600),
        begins_well: bool,
        pieces in proptest::collection::vec(1usize..9, 0..600),
    ) {
        if begins_well && bytes.len() > 1 {
            bytes[0] = 0x80 | [0, 1, 2, 8, 9, 10][usize::from(bytes[0]) % 6];
            bytes[1] &= 0x7f;
        }
        for role in [Role::Server, Role::Client] {
            prop_assert_eq!(read(role, &bytes, &[]), read(role, &bytes, &pieces));
        }
    }
}

fn error_of(role: Role, bytes: &[u8]) -> (Option<ProtocolError>, u16) {
    let error = read(role, bytes, &[]).1;
    (error, error.map_or(0, |error| error.close_code().get()))
}

#[test]
fn what_the_protocol_forbids_has_its_error_and_close_code() {
    use ProtocolError as E;
    let masked = |opcode, payload: &[u8]| frame::message(opcode, payload, Some([0; 4]));
    let joined = |frames: &[&[u8]]| frames.concat();
    let first_text = fragment(Opcode::Text, false, &[b'x'; 600], Some([0; 4]));
    let cases: [(Vec<u8>, E, u16); 15] = [
        (vec![0xc1, 0x80], E::ReservedBits, 1002),
        (vec![0x83, 0x80], E::ReservedOpcode(3), 1002),
        (vec![0x81, 0], E::NotMasked, 1002),
        (vec![0x81, 0xfe, 0, 125], E::LengthForm, 1002),
        (vec![0x82, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff], E::LengthForm, 1002),
        (vec![0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0], E::LengthForm, 1002),
        (masked(Opcode::Ping, &[0; 126]), E::Control, 1002),
        (fragment(Opcode::Ping, false, b"", Some([0; 4])), E::Control, 1002),
        (masked(Opcode::Continuation, b""), E::NoMessage, 1002),
        (joined(&[&first_text, &masked(Opcode::Text, b"")]), E::MessageWithinMessage, 1002),
        (
            frame::header(Opcode::Binary, 70_001, Some([0; 4])).to_vec(),
            E::FrameTooBig(70_001),
            1009,
        ),
        (joined(&[&first_text, &masked(Opcode::Continuation, &[b'x'; 401])]), E::TextTooBig, 1009),
        (masked(Opcode::Text, &[0xff]), E::NotUtf8, 1007),
        (masked(Opcode::Close, &[3]), E::CloseLength, 1002),
        (masked(Opcode::Close, &[3, 0xed]), E::CloseCode(1005), 1002),
    ];
    for (bytes, error, code) in cases {
        assert_eq!(error_of(Role::Server, &bytes), (Some(error), code), "{error}");
    }
    assert_eq!(error_of(Role::Client, &masked(Opcode::Text, b"")), (Some(E::Masked), 1002));
}

#[test]
fn the_largest_text_and_frame_are_accepted() {
    let mask = Some([9, 8, 7, 6]);
    let mut bytes = frame::message(Opcode::Text, &[b'x'; 1000], mask);
    bytes.extend(frame::message(Opcode::Binary, &[0; 70_000], mask));
    let (events, error) = read(Role::Server, &bytes, &[]);
    assert_eq!(error, None);
    assert_eq!(events, [Event::Text("x".repeat(1000)), Event::Binary(70_000), Event::BinaryEnd],);
}
