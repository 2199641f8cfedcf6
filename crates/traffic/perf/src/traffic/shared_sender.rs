//! TCP senders that share a thread, where the congestion control paces.
//!
//! Without the `fq` qdisc the kernel paces by a timer before each super-packet, and threads that
//! wait for it take the cores from each other. Measured over a veth pair on two cores with 4, 16
//! and 64 streams of BBR: 70 to 72 Gbit/s with one sending thread, 37 with a thread for each
//! stream. CUBIC does not pace, and is faster with a thread for each stream: 121 Gbit/s against
//! 80 with 4 streams, 97 against 62 with 16.

use super::{Traffic, bytes::Load, gather, gather::Gather, is_pause, sending_threads};
use crate::{
    plan::Plan,
    stream::{SOCKET_TIMEOUT, Stream},
};
use host::{tcp_info, wait::Poller};
use record::Protocol;
use std::io;

/// A stream whose thread has others as well.
struct Sender<'a> {
    stream: &'a Stream,
    /// Bytes of the present call that are written, of those that were drawn for it.
    written: usize,
    drawn: usize,
}

/// What became of a write.
enum Written {
    /// The socket is full, or others are to write first.
    Again,
    /// Nothing is left to send.
    Done,
}

impl Traffic {
    /// The streams of each shared thread: none if every sender has a thread of its own, because
    /// it waits for a rate, a file or a quota, because its congestion control does not pace, or
    /// because zero copy was asked for, which is faster so (over a veth pair 42 Gbit/s against 34,
    /// over loopback with 16 streams 61 against 51).
    pub(super) fn shared_senders<'a>(
        &self,
        streams: &'a [Stream],
        plan: &Plan,
    ) -> Vec<Vec<&'a Stream>> {
        let senders = streams.iter().filter(|stream| stream.sending).count();
        let threads = sending_threads(streams);
        let waits = plan.rate.is_some() || plan.file.is_some() || self.quota.is_some();
        let by_reference = plan.zerocopy == Some(true);
        if plan.protocol != Protocol::Tcp || waits || by_reference || senders <= threads {
            return Vec::new();
        }
        let paces = |stream: &Stream| {
            tcp_info::congestion(&stream.socket).is_ok_and(|name| name.starts_with("bbr"))
        };
        if !streams.iter().all(|stream| !stream.sending || paces(stream)) {
            return Vec::new();
        }
        let mut groups = vec![Vec::new(); threads];
        let sending = streams.iter().filter(|stream| stream.sending);
        sending.enumerate().for_each(|(at, stream)| groups[at % threads].push(stream));
        groups
    }

    /// Writes to each stream as much as its socket takes, in turn.
    pub(super) fn write_in_turn(&self, streams: &[&Stream], plan: &Plan, load: &Load) {
        let mut senders: Vec<_> =
            streams.iter().map(|stream| Sender { stream, written: 0, drawn: 0 }).collect();
        if let Err(error) = self.write_until_over(&mut senders, plan, load)
            && !self.has_sent()
        {
            streams.iter().for_each(|stream| stream.breaks(&error));
        }
        if plan.finish_block {
            senders.iter().for_each(|sender| sender.finish_block(load));
        }
    }

    /// Returns when every stream has sent all of its bytes or failed, or the test is over.
    fn write_until_over(
        &self,
        senders: &mut [Sender<'_>],
        plan: &Plan,
        load: &Load,
    ) -> io::Result<()> {
        let bytes = Gather::of(plan.block).most() * plan.block;
        let (mut poller, mut ready) = (Poller::new()?, Vec::new());
        for (token, sender) in senders.iter().enumerate() {
            sender.stream.socket.set_nonblocking(true)?;
            poller.add_for_writing(&sender.stream.socket, token)?;
        }
        let mut left = senders.len();
        while left > 0 && !self.has_sent() {
            poller.wait(Some(SOCKET_TIMEOUT), &mut ready)?;
            for &token in &ready {
                // A round writes a call to each stream, and the end does not wait for it.
                if self.has_sent() {
                    break;
                }
                let sender = &mut senders[token];
                if sender.written == sender.drawn {
                    (sender.written, sender.drawn) = (0, self.draw(bytes));
                }
                let written = sender.write(load);
                if let Err(error) = &written
                    && !self.has_sent()
                {
                    sender.stream.breaks(error);
                }
                if !matches!(written, Ok(Written::Again)) {
                    poller.remove(&sender.stream.socket)?;
                    left -= 1;
                }
            }
        }
        Ok(())
    }
}

impl Sender<'_> {
    fn write(&mut self, load: &Load) -> io::Result<Written> {
        if self.drawn == 0 {
            return Ok(Written::Done);
        }
        match self.write_up_to(self.drawn, load) {
            Ok(wrote) => {
                self.stream.count(wrote);
                self.written += wrote;
                Ok(Written::Again)
            }
            Err(error) if is_pause(&error) => Ok(Written::Again),
            Err(error) => Err(error),
        }
    }

    /// Writes up to byte `end` of those that were drawn. Never by reference: where that was asked
    /// for, or may be tried, each stream has a thread.
    fn write_up_to(&self, end: usize, load: &Load) -> io::Result<usize> {
        gather::write_repeated(&self.stream.socket, &load.block, self.written, end)
    }

    /// Writes the rest of a block that is partly written as far as the socket takes it.
    fn finish_block(&self, load: &Load) {
        let end = self.written.next_multiple_of(load.block.len());
        if let Ok(wrote) = self.write_up_to(end, load) {
            self.stream.count(wrote);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use socket2::Socket;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::thread::{self, JoinHandle};

    /// A stream that sends, and what its receiver got.
    fn connected(plan: &Plan, id: u32) -> (Stream, JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let from = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut to, _) = listener.accept().unwrap();
        let received = thread::spawn(move || {
            let mut all = Vec::new();
            to.read_to_end(&mut all).map(|_| all).unwrap_or_default()
        });
        (Stream::new(id, true, plan, Socket::from(from)).unwrap(), received)
    }

    #[test]
    fn streams_that_share_a_thread_send_whole_blocks_up_to_the_limit() {
        const BLOCK: usize = 40_000;
        const BLOCKS: usize = 300;
        let params = json!({"tcp": true, "len": BLOCK});
        let plan = Plan::of(&serde_json::from_value(params).unwrap());
        let (streams, received): (Vec<_>, Vec<_>) = (1..=3).map(|id| connected(&plan, id)).unzip();
        let load = Load::prepare(&plan, &streams).unwrap();
        let traffic = Traffic::new(None);
        traffic.limit((BLOCKS * BLOCK) as u64);
        // It ends when the budget is spent, without a thread of each stream's own.
        let one_thread: Vec<_> = streams.iter().collect();
        traffic.write_in_turn(&one_thread, &plan, &load);
        let sent: Vec<u64> = streams.iter().map(Stream::bytes).collect();
        assert_eq!(sent.iter().sum::<u64>(), (BLOCKS * BLOCK) as u64);
        assert!(sent.iter().all(|bytes| *bytes > 0), "each has its turn: {sent:?}");
        streams.iter().for_each(Stream::close);
        for (received, sent) in received.into_iter().zip(sent) {
            let received = received.join().unwrap();
            assert_eq!(received.len() as u64, sent);
            assert!(received.chunks(BLOCK).all(|block| block == load.block));
        }
    }

    #[test]
    fn a_stream_that_fails_does_not_end_the_others() {
        let plan = Plan::of(&serde_json::from_value(json!({"tcp": true})).unwrap());
        let (streams, received): (Vec<_>, Vec<_>) = (1..=2).map(|id| connected(&plan, id)).unzip();
        let load = Load::prepare(&plan, &streams).unwrap();
        let traffic = Traffic::new(None);
        traffic.limit(20 * plan.block as u64);
        streams[0].close();
        traffic.write_in_turn(&streams.iter().collect::<Vec<_>>(), &plan, &load);
        assert!(streams[0].broke().is_some() && streams[1].broke().is_none());
        assert!(streams[1].bytes() > 0);
        streams[1].close();
        let lengths = received.into_iter().map(|received| received.join().unwrap().len() as u64);
        assert_eq!(lengths.collect::<Vec<_>>(), [0, streams[1].bytes()]);
    }
}
