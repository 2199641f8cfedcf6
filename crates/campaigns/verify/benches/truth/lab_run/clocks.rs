//! What the hosts' kernels know of every connection, and of the CPU time of the test's
//! threads, sampled on the lab's clock: independent of the test's own samples.

use super::TestClock;
use bench_harness::Fallible;
use host::clock;
use host::netns::NetNs;
use host::sock_diag::{Bbr, Connection, SockDiag};
use host::tcp_info::{MemInfo, TcpInfo};
use lab::FlowKey;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};
use units::Nanos;

/// Time between readings: five in each 100 ms. A dump costs about 50 µs.
const EVERY: Duration = Duration::from_millis(20);

/// CPU times are read with every fifth of them.
const CPU_EVERY: u32 = 5;

/// A connection at its sender.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SenderReading {
    /// Since the lab was created.
    pub(crate) at: Nanos,
    pub(crate) info: TcpInfo,
    pub(crate) bbr: Option<Bbr>,
    /// The send buffer, and how much of it is used.
    pub(crate) memory: Option<MemInfo>,
}

/// A connection at its receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceiverReading {
    pub(crate) at: Nanos,
    /// Bytes that the application has read.
    pub(crate) read: u64,
    /// Bytes that it has not read yet.
    pub(crate) unread: u64,
}

/// CPU time of the busiest threads that carry the test's data.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuReading {
    pub(crate) at: Nanos,
    pub(crate) sender: ThreadShare,
    pub(crate) receiver: ThreadShare,
}

/// Shares of the time since the reading before.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct ThreadShare {
    /// On a core.
    pub(crate) used: f64,
    /// Ready to run, without a core.
    pub(crate) waited: f64,
}

/// All readings of a run.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// Connections by the direction of their data.
    pub(crate) senders: HashMap<FlowKey, Vec<SenderReading>>,
    pub(crate) receivers: HashMap<FlowKey, Vec<ReceiverReading>>,
    pub(crate) cpu: Vec<CpuReading>,
}

/// Samples until the test has ended. `sender` and `receiver` are the hosts of the data.
pub(super) fn sample(
    epoch: Instant,
    sender: &NetNs,
    receiver: &NetNs,
    clock: &TestClock,
) -> Fallible<Clocks> {
    let mut sending = sender.run(SockDiag::open)??;
    let mut receiving = receiver.run(SockDiag::open)??;
    let mut cpu = CpuClocks::new(sender)?;
    let mut clocks = Clocks::default();
    let mut next = clock::now();
    let mut count = 0u32;
    while !clock.has_ended() {
        let now = || Nanos(u64::try_from(epoch.elapsed().as_nanos()).unwrap_or(u64::MAX));
        let at = now();
        sending.connections(|found| {
            let Some(info) = found.info else { return };
            let key = key(found, true);
            let reading = SenderReading { at, info, bbr: found.bbr, memory: found.memory };
            clocks.senders.entry(key).or_default().push(reading);
        })?;
        let at = now();
        receiving.connections(|found| {
            let Some(info) = found.info else { return };
            let unread = u64::from(found.receive_queue);
            let read = info.bytes_received.unwrap_or(0).saturating_sub(unread);
            let reading = ReceiverReading { at, read, unread };
            clocks.receivers.entry(key(found, false)).or_default().push(reading);
        })?;
        if count.is_multiple_of(CPU_EVERY) {
            clocks.cpu.push(cpu.read(now()));
        }
        count += 1;
        next = (next + EVERY).max(clock::now());
        thread::sleep(next.saturating_duration_since(clock::now()));
    }
    Ok(clocks)
}

/// The direction of the data of a connection found at its sender or at its receiver.
fn key(found: &Connection<'_>, at_sender: bool) -> FlowKey {
    let (source, destination) =
        if at_sender { (found.local, found.remote) } else { (found.remote, found.local) };
    FlowKey { protocol: 6, source, destination }
}

/// The threads named `stream N`, in both hosts' namespaces.
struct CpuClocks {
    /// The sender's namespace, as `/proc` names it.
    sender: PathBuf,
    /// Of each thread: whether it sends, and its times so far in ns.
    threads: HashMap<String, (bool, [u64; 2])>,
    before: Nanos,
}

impl CpuClocks {
    fn new(sender: &NetNs) -> Fallible<Self> {
        let sender = sender.run(|| fs::read_link("/proc/thread-self/ns/net"))??;
        Ok(CpuClocks { sender, threads: HashMap::new(), before: Nanos(0) })
    }

    fn read(&mut self, at: Nanos) -> CpuReading {
        let passed = at.nanos_since(self.before).max(1) as f64;
        self.before = at;
        let mut reading = CpuReading { at, ..CpuReading::default() };
        let Ok(tasks) = fs::read_dir("/proc/self/task") else { return reading };
        for task in tasks.flatten() {
            let path = task.path();
            let name = task.file_name().to_string_lossy().into_owned();
            let known = self.threads.get(&name).copied();
            if known.is_none() {
                let is_stream = fs::read_to_string(path.join("comm"))
                    .is_ok_and(|name| name.starts_with("stream "));
                if !is_stream {
                    continue;
                }
            }
            // Nanoseconds on a core, those waiting for one, and time slices.
            let text = fs::read_to_string(path.join("schedstat")).unwrap_or_default();
            let mut words = text.split(' ').map(str::parse::<u64>);
            let (Some(Ok(used)), Some(Ok(waited))) = (words.next(), words.next()) else { continue };
            let sends = known.map_or_else(
                || fs::read_link(path.join("ns/net")).is_ok_and(|own| own == self.sender),
                |(sends, _)| sends,
            );
            let [used_before, waited_before] = known.map_or([0, 0], |(_, before)| before);
            self.threads.insert(name, (sends, [used, waited]));
            let share = ThreadShare {
                used: used.saturating_sub(used_before) as f64 / passed,
                waited: waited.saturating_sub(waited_before) as f64 / passed,
            };
            let busiest = if sends { &mut reading.sender } else { &mut reading.receiver };
            if share.used > busiest.used {
                *busiest = share;
            }
        }
        reading
    }
}
