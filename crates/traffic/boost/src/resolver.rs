//! Resolves names for the threads that must not wait.

use host::address_key::AddressKey;
use host::clock;
use host::lock::lock;
use host::resolve::{Family, resolve};
use host::stop::StopFlag;
use lane::{HostName, Refusal};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Names that are looked up at once.
const THREADS: usize = 16;
/// Names that may wait for one of them.
const WAITING: usize = 1024;
/// Those of one near box, with the names that are looked up.
const PER_BOX: usize = 256;
/// Timeout of one name, from the question.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Gets the answer.
pub(crate) type Answer = Box<dyn FnOnce(Result<Vec<SocketAddr>, Refusal>) + Send>;

struct Query {
    name: HostName,
    port: u16,
    until: Instant,
    answer: Answer,
    _ticket: Ticket,
}

/// Names of each near box.
type Counts = Arc<Mutex<HashMap<AddressKey, usize>>>;

/// Counts a name of a near box until it is dropped.
struct Ticket {
    counts: Counts,
    near: AddressKey,
}

impl Ticket {
    fn take(counts: &Counts, near: AddressKey) -> Option<Self> {
        let mut all = lock(counts);
        let count = all.entry(near).or_default();
        if *count >= PER_BOX {
            return None;
        }
        *count += 1;
        drop(all);
        Some(Ticket { counts: Arc::clone(counts), near })
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = lock(&self.counts).entry(self.near) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

/// Where names are handed over; its threads end when it is dropped.
#[derive(Clone)]
pub(crate) struct Resolver {
    queries: SyncSender<Query>,
    counts: Counts,
}

impl Resolver {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system refuses one.
    pub(crate) fn start<'s>(
        scope: &'s std::thread::Scope<'s, '_>,
        stop: &StopFlag,
    ) -> std::io::Result<Self> {
        let (sender, queries) = sync_channel(WAITING);
        let queries = Arc::new(Mutex::new(queries));
        for _ in 0..THREADS {
            let (queries, stop) = (Arc::clone(&queries), stop.clone());
            let thread = std::thread::Builder::new().name("resolver".to_owned());
            thread.spawn_scoped(scope, move || serve(&queries, &stop))?;
        }
        Ok(Resolver { queries: sender, counts: Counts::default() })
    }

    /// Asks for the addresses of a name, for a flow of a near box.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if too many names wait, in all or of this box.
    pub(crate) fn ask(
        &self,
        name: HostName,
        port: u16,
        near: IpAddr,
        answer: Answer,
    ) -> Result<(), Refusal> {
        let ticket = Ticket::take(&self.counts, AddressKey::of(near)).ok_or(Refusal::Busy)?;
        let until = clock::now() + TIMEOUT;
        let query = Query { name, port, until, answer, _ticket: ticket };
        self.queries.try_send(query).map_err(|_| Refusal::Busy)
    }
}

fn serve(queries: &Mutex<Receiver<Query>>, stop: &StopFlag) {
    loop {
        let next = lock(queries).recv();
        let Ok(Query { name, port, until, answer, _ticket }) = next else { return };
        let ends = || stop.is_raised() || clock::now() >= until;
        if ends() {
            answer(Err(Refusal::TimedOut));
            continue;
        }
        answer(match resolve(name.as_str(), port, Family::Any, None, &ends) {
            Ok(Some(addresses)) => Ok(addresses),
            Ok(None) => Err(Refusal::TimedOut),
            Err(_) => Err(Refusal::NameNotFound),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn a_near_box_leaves_room_for_others_and_what_is_late_is_not_looked_up() {
        let near = ["192.0.2.1", "192.0.2.2"].map(|ip| ip.parse::<IpAddr>().unwrap());
        let (sender, queries) = sync_channel(WAITING);
        let resolver = Resolver { queries: sender, counts: Counts::default() };
        let (answered, answers) = channel();
        let name = HostName::new("localhost").unwrap();
        let ask = |near| {
            let answered = answered.clone();
            let answer = Box::new(move |found| answered.send(found).unwrap());
            resolver.ask(name.clone(), 1, near, answer)
        };
        for _ in 0..PER_BOX {
            ask(near[0]).unwrap();
        }
        assert_eq!(ask(near[0]), Err(Refusal::Busy));
        ask(near[1]).unwrap();
        // Only the last one is still in time.
        let late = clock::now();
        let (sender, in_time) = sync_channel(WAITING);
        for (index, query) in queries.try_iter().enumerate() {
            let until = if index < PER_BOX { late } else { query.until };
            sender.send(Query { until, ..query }).unwrap();
        }
        drop(sender);
        serve(&Mutex::new(in_time), &StopFlag::new());
        let answers: Vec<_> = answers.try_iter().collect();
        let (last, first) = answers.split_last().unwrap();
        assert!(first.iter().all(|found| *found == Err(Refusal::TimedOut)));
        assert!(first.len() == PER_BOX && last.is_ok(), "{last:?}");
        assert_eq!(lock(&resolver.counts).len(), 0);
    }
}
