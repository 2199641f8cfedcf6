//! Many visitors at once, and many connections on which nothing is said, in little memory.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod visitor;

use host::clock;
use longhaul::StopFlag;
use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;
use units::ByteCount;
use visitor::{Visitor, address, idle};
use web::{WebEvent, WebRequest};

const VISITORS: u32 = 20;
const IDLE: u32 = 200;
/// Of this process: the server and its clients.
const MAX_RESIDENT: ByteCount = ByteCount::from_bytes(300_000_000);

/// Stops a server when it is dropped.
struct Stopping<'a>(&'a StopFlag);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.raise();
    }
}

/// A server, while something is done with it.
fn with_server<T>(request: &WebRequest, work: impl FnOnce(SocketAddr) -> T) -> T {
    let stop = StopFlag::new();
    let (sender, events) = channel();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let on_event = &mut |event| drop(sender.send(event));
            web::serve(request, on_event, &StopFlag::new(), &stop).unwrap();
        });
        let first = events.recv_timeout(Duration::from_secs(10)).unwrap();
        let WebEvent::Listening { address, .. } = first else { panic!("{first:?}") };
        // Also when the work panics: the scope waits for the server.
        let stopping = Stopping(&stop);
        let done = work(address);
        drop(stopping);
        serving.join().unwrap();
        done
    })
}

fn request() -> WebRequest {
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut request = WebRequest { listen, step_seconds: 0.8, ..WebRequest::default() };
    request.limits.runs = VISITORS + IDLE;
    request
}

#[test]
fn visitors_and_idle_sockets_are_served_in_little_memory() {
    stall_retry::retry(check_visitors_and_idle_sockets);
}

fn check_visitors_and_idle_sockets() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let most = with_server(&request(), |server| {
        runtime.block_on(async {
            let until = clock::now() + Duration::from_secs(5);
            // Four of each address, as many as one may have.
            let idles: Vec<_> = (0..IDLE)
                .map(|number| tokio::spawn(idle(server, VISITORS + number / 4, until)))
                .collect();
            let visitors: Vec<_> = (0..VISITORS)
                .map(|number| tokio::spawn(Visitor::new(server, number, 5e6).run()))
                .collect();
            for visitor in visitors {
                let result = visitor.await.unwrap().unwrap();
                assert!(result["download"]["several_flows"].is_number(), "{result}");
                assert!(result["upload"]["several_flows"].is_number(), "{result}");
            }
            for idle in idles {
                assert!(idle.await.unwrap().unwrap() >= 1);
            }
            host::memory::resident().unwrap()
        })
    });
    assert!(most < MAX_RESIDENT, "{most}");
}

/// More WebSockets than there may be, from as many addresses as it takes: each is served, or told
/// when to come again, and then there is room again.
#[test]
fn a_crowd_of_idle_sockets_is_refused_with_a_reason() {
    let mut request = request();
    request.limits.runs = 40;
    request.limits.connections = 500;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    with_server(&request, |server| {
        runtime.block_on(async {
            let (mut open, mut refused) = (Vec::new(), 0);
            for number in 0..400 {
                let socket = visitor::Socket::open(server, address(number / 4), "/api/run");
                match socket.await.unwrap() {
                    Ok(socket) => open.push(socket),
                    Err(head) => {
                        let head = head.to_lowercase();
                        assert!(head.starts_with("http/1.1 429 "), "{head}");
                        assert!(head.contains("\r\nretry-after: "), "{head}");
                        refused += 1;
                    }
                }
            }
            assert_eq!((open.len(), refused), (40, 360));
            drop(open);
            tokio::time::sleep(Duration::from_millis(500)).await;
            let again = visitor::Socket::open(server, address(1000), "/api/run").await;
            assert!(again.unwrap().is_ok());
        });
    });
}
