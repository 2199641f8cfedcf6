//! Both boxes as threads of a test.

use boost::{
    Destinations, Ending, Event, Far, FarConfig, FarKeys, FlowEnd, Ingress, LaneOptions, Listener,
    Near, NearConfig, PairKey, PortForward, Target, Timeouts, Totals, keys, sockets,
};
use control::Algorithm;
use host::clock;
use host::lock::lock;
use host::stop::StopFlag;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// What every wait of a test is bounded by.
pub(super) const LONG: Duration = Duration::from_secs(20);

/// Settings of a test's boxes.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) with_tls: bool,
    pub(super) mux: bool,
    pub(super) udt: bool,
    /// The UDP port of far; `None`: any.
    pub(super) udt_port: Option<u16>,
    pub(super) connections: Option<usize>,
    /// Near, far.
    pub(super) compresses: [bool; 2],
    pub(super) lanes: usize,
    pub(super) timeouts: Timeouts,
    pub(super) max_flows: u64,
    /// Where near connects instead of to far.
    pub(super) via: Option<SocketAddr>,
    /// An address of far at which nobody listens, tried first.
    pub(super) dead: Option<SocketAddr>,
    /// What far allows; `None` for the target alone.
    pub(super) allow: Option<String>,
}

impl Default for Setup {
    fn default() -> Self {
        let timeouts = Timeouts::default();
        let (dead, allow) = (None, None);
        Setup {
            with_tls: false,
            mux: false,
            udt: false,
            udt_port: None,
            connections: None,
            compresses: [false; 2],
            lanes: 0,
            timeouts,
            max_flows: 10_000,
            via: None,
            dead,
            allow,
        }
    }
}

/// Plaintext and TLS.
pub(super) fn both() -> [Setup; 2] {
    [Setup::default(), Setup { with_tls: true, ..Setup::default() }]
}

/// A box that runs in a thread.
pub(super) struct Running {
    pub(super) stop: StopFlag,
    pub(super) drain: StopFlag,
    events: Arc<Mutex<Vec<Event>>>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn start(serve: impl FnOnce(Ending<'_>, &(dyn Fn(Event) + Sync)) + Send + 'static) -> Self {
        let (stop, drain) = (StopFlag::new(), StopFlag::new());
        let events: Arc<Mutex<Vec<Event>>> = Arc::default();
        let thread = std::thread::spawn({
            let (stop, drain, events) = (stop.clone(), drain.clone(), Arc::clone(&events));
            move || {
                let ending = Ending { stop: &stop, drain: &drain };
                serve(ending, &|event| lock(&events).push(event));
            }
        });
        Running { stop, drain, events, thread: Some(thread) }
    }

    /// The first event that `find` accepts, once there is one.
    pub(super) fn event<T>(&self, find: impl Fn(&Event) -> Option<T>) -> T {
        until(|| lock(&self.events).iter().find_map(&find))
    }

    /// How the flow number `index` ended.
    pub(super) fn flow_end(&self, index: usize) -> FlowEnd {
        until(|| {
            let events = lock(&self.events);
            let ends = events.iter().filter_map(|event| match event {
                Event::FlowEnded(summary) => Some(summary.end.clone()),
                _ => None,
            });
            ends.into_iter().nth(index)
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits until `find` finds something.
pub(super) fn until<T>(mut find: impl FnMut() -> Option<T>) -> T {
    let deadline = clock::now() + LONG;
    loop {
        if let Some(found) = find() {
            return found;
        }
        assert!(clock::now() < deadline, "it takes too long");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A pair that forwards a port to a target.
pub(super) struct Pair {
    pub(super) address: SocketAddr,
    pub(super) far_address: SocketAddr,
    pub(super) near: Running,
    pub(super) far: Running,
    pub(super) near_box: Arc<Near>,
    far_box: Arc<Far>,
}

impl Pair {
    pub(super) fn new(target: SocketAddr, setup: &Setup) -> Self {
        let ingress = PortForward(target.to_string().parse::<Target>().unwrap());
        let allow = setup.allow.clone().unwrap_or_else(|| target.to_string());
        Pair::with(Arc::new(ingress), &allow, setup)
    }

    pub(super) fn with(ingress: Arc<dyn Ingress>, allow: &str, setup: &Setup) -> Self {
        let [near_key, far_key] = keys::generate().unwrap();
        let far_keys = || FarKeys::new(vec![PairKey::of_far(&far_key).unwrap()]).unwrap();
        let options = LaneOptions::default();
        let listener = sockets::lane_listener(loopback(), &options).unwrap();
        let far_address = listener.local_addr().unwrap();
        let rules = allow.split(',').map(|rule| rule.parse().unwrap());
        let far_box = Arc::new(Far::new(FarConfig {
            keys: setup.with_tls.then(far_keys),
            policy: Arc::new(Destinations::new(rules.collect(), Box::new(|_| false))),
            compresses: setup.compresses[1],
            udt: Algorithm::Bbr3,
            udt_ports: setup.udt_port.map(|port| port..=port),
            timeouts: setup.timeouts,
            max_lanes: 10_000,
            threads: 2,
        }));
        let near_box = Arc::new(Near::new(NearConfig {
            far: setup.dead.into_iter().chain([setup.via.unwrap_or(far_address)]).collect(),
            key: setup.with_tls.then(|| PairKey::of_near(&near_key).unwrap()),
            lanes: setup.lanes,
            mux: setup.mux,
            udt: setup.udt.then_some(Algorithm::Bbr3),
            connections: setup.connections,
            compresses: setup.compresses[0],
            options,
            timeouts: setup.timeouts,
            max_flows: setup.max_flows,
            direct_rate: None,
            threads: 2,
        }));
        let socket = sockets::application_listener(loopback()).unwrap();
        let address = socket.local_addr().unwrap();
        let far = Running::start({
            let far = Arc::clone(&far_box);
            move |ending, report| far.serve(vec![listener], ending, report).unwrap()
        });
        let near = Running::start({
            let near = Arc::clone(&near_box);
            move |ending, report| {
                near.serve(vec![Listener { socket, ingress }], ending, report).unwrap();
            }
        });
        Pair { address, far_address, near, far, near_box, far_box }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.set_write_timeout(Some(LONG)).unwrap();
        stream
    }

    pub(super) fn near_totals(&self) -> Totals {
        self.near_box.totals()
    }

    pub(super) fn far_totals(&self) -> Totals {
        self.far_box.totals()
    }
}

pub(super) fn loopback() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A target that a test accepts the connections of.
pub(super) fn target() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(super) fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.set_write_timeout(Some(LONG)).unwrap();
    stream
}

/// Closes a connection with an RST.
pub(super) fn reset(stream: TcpStream) {
    host::socket::set_reset_on_close(&stream, true).unwrap();
    drop(stream);
}
