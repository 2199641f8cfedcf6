//! Resolves names for the threads that must not wait. Near boxes take turns, so that none waits for
//! the names of another.

use host::address_key::AddressKey;
use host::clock;
use host::lock::{lock, wait};
use host::resolve::{Family, resolve};
use host::stop::StopFlag;
use lane::{HostName, Refusal};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Names that are looked up at once.
const THREADS: usize = 16;
/// Those of one near box: a name whose servers do not answer takes its whole time.
const THREADS_OF_BOX: usize = 4;
/// Names that may wait for one of them.
const WAITING: usize = 1024;
/// Those of one near box.
const WAITING_OF_BOX: usize = 256;
/// Timeout of one name, from the question.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Gets the answer.
pub(crate) type Answer = Box<dyn FnOnce(Result<Vec<SocketAddr>, Refusal>) + Send>;

struct Query {
    name: HostName,
    port: u16,
    until: Instant,
    answer: Answer,
}

/// The names of a near box.
struct BoxNames<Q> {
    waiting: VecDeque<Q>,
    looked_up: usize,
}

/// The names that wait, by near box.
struct Turns<Q> {
    boxes: HashMap<AddressKey, BoxNames<Q>>,
    /// Boxes of which a name waits and another one may be looked up, in their order.
    next: VecDeque<AddressKey>,
    waiting: usize,
    is_closed: bool,
}

impl<Q> Turns<Q> {
    fn new() -> Self {
        Turns { boxes: HashMap::new(), next: VecDeque::new(), waiting: 0, is_closed: false }
    }

    /// Adds a name of a box.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if too many wait, in all or of this box.
    fn add(&mut self, near: AddressKey, query: Q) -> Result<(), Refusal> {
        if self.waiting >= WAITING {
            return Err(Refusal::Busy);
        }
        let none = || BoxNames { waiting: VecDeque::new(), looked_up: 0 };
        let names = self.boxes.entry(near).or_insert_with(none);
        if names.waiting.len() >= WAITING_OF_BOX {
            return Err(Refusal::Busy);
        }
        if names.waiting.is_empty() && names.looked_up < THREADS_OF_BOX {
            self.next.push_back(near);
        }
        names.waiting.push_back(query);
        self.waiting += 1;
        Ok(())
    }

    /// The name that is to be looked up next, and its box, whose next turn is behind all others'.
    fn take(&mut self) -> Option<(AddressKey, Q)> {
        let near = self.next.pop_front()?;
        let names = self.boxes.get_mut(&near)?;
        let query = names.waiting.pop_front()?;
        self.waiting -= 1;
        names.looked_up += 1;
        if !names.waiting.is_empty() && names.looked_up < THREADS_OF_BOX {
            self.next.push_back(near);
        }
        Some((near, query))
    }

    /// A name of a box has been looked up.
    fn done(&mut self, near: AddressKey) {
        let Some(names) = self.boxes.get_mut(&near) else { return };
        if !names.waiting.is_empty() && names.looked_up == THREADS_OF_BOX {
            self.next.push_back(near);
        }
        names.looked_up = names.looked_up.saturating_sub(1);
        if names.waiting.is_empty() && names.looked_up == 0 {
            self.boxes.remove(&near);
        }
    }
}

struct Shared {
    turns: Mutex<Turns<Query>>,
    changed: Condvar,
}

/// Closes the queue when the last one who may ask is dropped.
struct Asker(Arc<Shared>);

impl Drop for Asker {
    fn drop(&mut self) {
        lock(&self.0.turns).is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Where names are handed over; its threads end when it is dropped.
#[derive(Clone)]
pub(crate) struct Resolver(Arc<Asker>);

impl Resolver {
    /// Starts the threads.
    ///
    /// # Errors
    /// The system refuses one.
    pub(crate) fn start<'s>(
        scope: &'s std::thread::Scope<'s, '_>,
        stop: &StopFlag,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { turns: Mutex::new(Turns::new()), changed: Condvar::new() });
        let resolver = Resolver(Arc::new(Asker(Arc::clone(&shared))));
        for _ in 0..THREADS {
            let (shared, stop) = (Arc::clone(&shared), stop.clone());
            let thread = std::thread::Builder::new().name("resolver".to_owned());
            thread.spawn_scoped(scope, move || serve(&shared, &stop))?;
        }
        Ok(resolver)
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
        let until = clock::now() + TIMEOUT;
        let shared = &*self.0.0;
        lock(&shared.turns).add(AddressKey::of(near), Query { name, port, until, answer })?;
        shared.changed.notify_one();
        Ok(())
    }
}

fn serve(shared: &Shared, stop: &StopFlag) {
    let mut turns = lock(&shared.turns);
    loop {
        let Some((near, query)) = turns.take() else {
            if turns.is_closed {
                return;
            }
            turns = wait(&shared.changed, turns);
            continue;
        };
        drop(turns);
        look_up(query, stop);
        turns = lock(&shared.turns);
        turns.done(near);
    }
}

fn look_up(Query { name, port, until, answer }: Query, stop: &StopFlag) {
    let ends = || stop.is_raised() || clock::now() >= until;
    if ends() {
        return answer(Err(Refusal::TimedOut));
    }
    answer(match resolve(name.as_str(), port, Family::Any, None, &ends) {
        Ok(Some(addresses)) => Ok(addresses),
        Ok(None) => Err(Refusal::TimedOut),
        Err(_) => Err(Refusal::NameNotFound),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn near(last: u8) -> AddressKey {
        AddressKey::of(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn near_boxes_take_turns() {
        let mut turns = Turns::new();
        for name in 0..WAITING_OF_BOX {
            turns.add(near(1), name).unwrap();
        }
        assert_eq!(turns.add(near(1), 0), Err(Refusal::Busy));
        let taken: Vec<_> = std::iter::from_fn(|| turns.take()).collect();
        assert_eq!(taken, [0, 1, 2, 3].map(|name| (near(1), name)), "its threads");
        for other in [2, 3, 2] {
            turns.add(near(other), 1000).unwrap();
        }
        // One of its threads is free again: it has the next turn, then the others have theirs.
        turns.done(near(1));
        turns.add(near(1), 1001).unwrap();
        let taken: Vec<_> = std::iter::from_fn(|| turns.take()).map(|(near, _)| near).collect();
        assert_eq!(taken, [2, 3, 1, 2].map(near));
    }

    #[test]
    fn names_that_wait_are_bounded_and_boxes_without_any_are_forgotten() {
        let mut turns = Turns::new();
        let add = |turns: &mut Turns<()>, last| turns.add(near(last), ());
        for count in 0..WAITING {
            add(&mut turns, (count / WAITING_OF_BOX) as u8).unwrap();
        }
        assert_eq!(add(&mut turns, 9), Err(Refusal::Busy));
        let mut looked_up = VecDeque::new();
        loop {
            looked_up.extend(std::iter::from_fn(|| turns.take()));
            let Some((near, ())) = looked_up.pop_front() else { break };
            turns.done(near);
        }
        assert_eq!((turns.waiting, turns.next.len(), turns.boxes.len()), (0, 0, 0));
    }

    #[test]
    fn what_is_late_is_not_looked_up_and_threads_end_with_the_resolver() {
        std::thread::scope(|scope| {
            let resolver = Resolver::start(scope, &StopFlag::new()).unwrap();
            let (answered, answers) = channel();
            let name = HostName::new("localhost").unwrap();
            let answer = || -> Answer {
                let answered = answered.clone();
                Box::new(move |found| answered.send(found).unwrap())
            };
            resolver.ask(name.clone(), 1, [192, 0, 2, 1].into(), answer()).unwrap();
            assert!(answers.recv().unwrap().is_ok());
            let late = Query { name, port: 1, until: clock::now(), answer: answer() };
            look_up(late, &StopFlag::new());
            assert_eq!(answers.recv().unwrap(), Err(Refusal::TimedOut));
        });
    }
}
