//! Resolves names for the threads that must not wait.

use host::clock;
use host::lock::lock;
use host::resolve::{Family, resolve};
use host::stop::StopFlag;
use lane::{HostName, Refusal};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Names that are looked up at once.
const THREADS: usize = 16;
/// Names that may wait for one of them.
const WAITING: usize = 1024;
/// Timeout of one name.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Gets the answer.
pub(crate) type Answer = Box<dyn FnOnce(Result<Vec<SocketAddr>, Refusal>) + Send>;

struct Query {
    name: HostName,
    port: u16,
    answer: Answer,
}

/// Where names are handed over; its threads end when it is dropped.
#[derive(Clone)]
pub(crate) struct Resolver(SyncSender<Query>);

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
        let queries = std::sync::Arc::new(Mutex::new(queries));
        for _ in 0..THREADS {
            let (queries, stop) = (std::sync::Arc::clone(&queries), stop.clone());
            let thread = std::thread::Builder::new().name("resolver".to_owned());
            thread.spawn_scoped(scope, move || serve(&queries, &stop))?;
        }
        Ok(Resolver(sender))
    }

    /// Asks for the addresses of a name.
    ///
    /// # Errors
    /// [`Refusal::Busy`] if too many names wait.
    pub(crate) fn ask(&self, name: HostName, port: u16, answer: Answer) -> Result<(), Refusal> {
        self.0.try_send(Query { name, port, answer }).map_err(|_| Refusal::Busy)
    }
}

fn serve(queries: &Mutex<Receiver<Query>>, stop: &StopFlag) {
    loop {
        let next = lock(queries).recv();
        let Ok(Query { name, port, answer }) = next else { return };
        let until = clock::now() + TIMEOUT;
        let ends = || stop.is_raised() || clock::now() >= until;
        answer(match resolve(name.as_str(), port, Family::Any, None, &ends) {
            Ok(Some(addresses)) => Ok(addresses),
            Ok(None) => Err(Refusal::TimedOut),
            Err(_) => Err(Refusal::NameNotFound),
        });
    }
}
