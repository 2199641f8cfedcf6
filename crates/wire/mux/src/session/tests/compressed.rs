//! Compressed blocks.

use super::*;

#[test]
fn blocks_need_the_offer_of_both_boxes() {
    let block = Block::new(100, MAX_BLOCK).unwrap();
    let mut session = Session::new(Role::Far);
    let frames = [Frame::Compressed(1, block)];
    assert_eq!(takes(&mut session, &frames), Err(MuxError::Compressed));
    let mut pair = Pair::new();
    let id = pair.open();
    let near = &mut pair.ends[0].session;
    near.compresses = false;
    let unsent = near.unsent();
    assert_eq!(near.send_compressed(id, block, &[0; 100]), Err(MuxError::Compressed));
    near.compresses = true;
    assert_eq!(near.send_compressed(id, block, &[0; 99]), Err(MuxError::OutOfOrder));
    assert_eq!(near.send_compressed(id, block, &[0; 100]), Err(MuxError::OutOfOrder), "its credit");
    assert_eq!(near.unsent(), unsent);
}

#[test]
fn a_block_may_be_cut_and_resumed_at_any_byte() {
    let (block, compressed) = compress(&bytes(1, 0, 1000));
    let whole = {
        let mut near = End::new(Role::Near);
        near.session.open(&target()).unwrap();
        near.records.insert(1, Record::default());
        near.compress(1, 1000);
        near.transmit(usize::MAX)
    };
    assert!(whole.ends_with(&compressed));
    for cut in 0..whole.len() {
        let mut pair = Pair::new();
        let id = pair.open();
        pair.ends[0].compress(id, 1000);
        pair.pass(0, cut, cut);
        // What is on its way is lost.
        pair.pass(0, 50, 0);
        pair.break_and_resume();
        pair.settle();
        let far = &pair.ends[1];
        assert_eq!((far.records[&id].got, far.block.len()), (block.size(), 0), "cut at {cut}");
    }
}

#[test]
fn credit_is_taken_for_what_a_block_decompresses_to() {
    let mut pair = Pair::new();
    let id = pair.open();
    pair.ends[0].compress(id, MAX_BLOCK);
    assert_eq!(pair.ends[0].session.may_send(id), 0, "16 KiB were credit for a block of 16 KiB");
    for _ in 0..4 {
        pair.settle();
        pair.ends[0].compress(id, MAX_BLOCK);
    }
    let window = pair.ends[0].records[&id].sent - pair.ends[1].records[&id].got;
    assert_eq!(window, MAX_BLOCK, "the window grows as for payload");
}

#[test]
fn a_block_of_an_aborted_stream_still_has_its_end() {
    let mut pair = Pair::new();
    let [id, other] = [pair.open(), pair.open()];
    pair.settle();
    let far = &mut pair.ends[1].session;
    let (block, compressed) = compress(&bytes(id, 0, 1000));
    far.send_compressed(id, block, &compressed).unwrap();
    far.send(other, b"next").unwrap();
    let mut input = pair.ends[1].transmit(usize::MAX);
    let near = &mut pair.ends[0].session;
    near.reset(id);
    let mut skipped = 0;
    loop {
        let received = near.receive(&input[..input.len().min(20)]).unwrap();
        input.drain(..received.used);
        match received.event {
            Some(Event::Compressed(piece)) => skipped += piece.count,
            Some(event) => break assert_eq!(event, Event::Data(other, 4)),
            None => {}
        }
    }
    assert_eq!(skipped, compressed.len());
}
