//! A server for a test.

use longhaul::StopFlag;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use web::{WebEvent, WebRequest};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// Where it serves tests of responsiveness.
    pub(crate) responsiveness: SocketAddr,
    /// Raised to have it end with its last transfer.
    pub(crate) drain: StopFlag,
    /// What happens after it has begun.
    pub(crate) events: Receiver<WebEvent>,
    stop: StopFlag,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one on the loopback.
    pub(crate) fn start(change: impl FnOnce(&mut WebRequest)) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut request =
            WebRequest { listen: any, responsiveness: Some(any), ..WebRequest::default() };
        change(&mut request);
        let (drain, stop) = (StopFlag::new(), StopFlag::new());
        let flags = (drain.clone(), stop.clone());
        let (sender, events) = channel();
        let thread = std::thread::spawn(move || {
            let mut on_event = |event| drop(sender.send(event));
            let result = web::serve(&request, &mut on_event, &flags.0, &flags.1);
            assert!(result.is_ok(), "{result:?}");
        });
        let next = || loop {
            match events.recv() {
                Ok(
                    WebEvent::Listening { address, .. }
                    | WebEvent::ListeningForResponsiveness { address, .. },
                ) => return address,
                Ok(WebEvent::ListeningForDatagrams { .. }) => {}
                other => panic!("{other:?}"),
            }
        };
        let (address, responsiveness) = (next(), next());
        Server { address, responsiveness, drain, events, stop, thread: Some(thread) }
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.raise();
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || matches!(ended, Some(Ok(()))));
    }
}
