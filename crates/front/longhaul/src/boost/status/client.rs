//! Asks running boxes for their figures.

use super::page;
use crate::http_client::{self, Endpoint};
use crate::{Fault, Field, Problem, StopFlag};
use host::clock;
use host::control::{self, Owner};
use host::resolve::Family;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use record::{BOOST_STATUS_SCHEMA, BoostStatus, BoxStatus, SilentBox};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Time for one box of this host.
const LOCAL_TIME: Duration = Duration::from_secs(2);
/// Most boxes of this host that are asked.
const MAX_BOXES: usize = 256;
/// Time for a page of metrics, from the name to its last byte.
const PAGE_TIME: Duration = Duration::from_secs(5);
/// Largest page of metrics, and its header, in bytes.
const MAX_PAGE: usize = 256 << 10;
const MAX_HEADER: usize = 16 << 10;

/// Which boxes to ask.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StatusRequest {
    /// The pages of metrics of boxes, as `http://ADDRESS:PORT/metrics`. None: the boxes of this user
    /// on this host.
    pub urls: Vec<String>,
}

impl StatusRequest {
    /// Checks the fields.
    ///
    /// # Errors
    /// The invalid field, and the values that it accepts.
    pub fn check(&self) -> Result<(), Problem> {
        let accepted = || format!("at most {MAX_BOXES} URLs");
        if self.urls.len() > MAX_BOXES {
            return Err(Problem::field(Field::Host, "too many URLs", accepted()));
        }
        self.urls.iter().try_for_each(|url| endpoint(url).map(drop))
    }
}

/// Asks each box once.
///
/// # Errors
/// An invalid field; the kernel's list of sockets cannot be read; an interruption.
pub fn status(request: &StatusRequest, stop: &StopFlag) -> Result<BoostStatus, Problem> {
    request.check()?;
    let mut status = BoostStatus {
        schema: BOOST_STATUS_SCHEMA.to_owned(),
        time: clock::unix_time().as_secs_f64(),
        boxes: Vec::new(),
        silent: Vec::new(),
    };
    let names = match request.urls.as_slice() {
        [] => control::running(Owner::Boost).map_err(|error| {
            Problem::new(Fault::Host, format!("cannot list the running boxes: {error}"))
        })?,
        urls => urls.to_vec(),
    };
    for name in names.into_iter().take(MAX_BOXES) {
        let found = match request.urls.is_empty() {
            true => local(&name),
            false => remote(&name, stop),
        };
        match found {
            Ok(found) => status.boxes.push(found),
            Err(problem) if problem.fault == Fault::Interrupted => return Err(problem),
            Err(Problem { message: why, .. }) => status.silent.push(SilentBox { name, why }),
        }
    }
    Ok(status)
}

fn local(name: &str) -> Result<BoxStatus, Problem> {
    let failed = |error: std::io::Error| Problem::new(Fault::Peer, error);
    let mut connection = control::connect(Owner::Boost, name).map_err(failed)?;
    let line = connection.receive_line(LOCAL_TIME).map_err(failed)?.unwrap_or_default();
    let status: BoxStatus = serde_json::from_str(&line)
        .map_err(|_| Problem::new(Fault::Peer, "it is of another version of longhaul"))?;
    Ok(BoxStatus { name: name.to_owned(), pid: connection.peer_pid(), ..status })
}

fn endpoint(url: &str) -> Result<Endpoint, Problem> {
    // Metrics are served without TLS.
    let text = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    Endpoint::parse(&text)
}

fn remote(url: &str, stop: &StopFlag) -> Result<BoxStatus, Problem> {
    let endpoint = endpoint(url)?;
    let late = || Problem::new(Fault::Peer, format!("no answer within {} s", PAGE_TIME.as_secs()));
    let page = async {
        let get = get(&endpoint, stop);
        tokio::time::timeout(PAGE_TIME, get).await.unwrap_or_else(|_| Err(late()))
    };
    let page = http_client::block_on(page, stop)?;
    page::read(url.to_owned(), &page).map_err(|why| Problem::new(Fault::Peer, why))
}

async fn get(endpoint: &Endpoint, stop: &StopFlag) -> Result<String, Problem> {
    let failed = |error: String| Problem::new(Fault::Peer, error);
    let (_, connected) =
        http_client::find(endpoint, Family::Any, false, &[b"http/1.1".as_slice()], stop).await?;
    let io = TokioIo::new(connected.stream);
    let opened = http1::Builder::new().max_buf_size(MAX_HEADER).handshake(io).await;
    let (mut sender, connection) = opened.map_err(|error| failed(error.to_string()))?;
    let request = Request::get(endpoint.target("/metrics"))
        .header(header::HOST, endpoint.authority())
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(error.to_string()))?;
    // Ends with the runtime.
    tokio::spawn(connection);
    let answer = sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
    if answer.status() != StatusCode::OK {
        return Err(failed(format!("the answer is {}", answer.status())));
    }
    let body = Limited::new(answer.into_body(), MAX_PAGE).collect().await;
    let body = body.map_err(|error| failed(format!("the page cannot be read: {error}")))?;
    String::from_utf8(body.to_bytes().to_vec())
        .map_err(|_| failed("the page is not UTF-8".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boost::status::{BoxRole, Serving};
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::Arc;
    use std::thread::JoinHandle;

    fn near() -> Arc<::boost::Near> {
        Arc::new(::boost::Near::new(::boost::NearConfig {
            far: Vec::new(),
            key: None,
            lanes: 0,
            mux: false,
            udt: None,
            connections: None,
            compresses: false,
            options: ::boost::LaneOptions::default(),
            timeouts: ::boost::Timeouts::default(),
            max_flows: 1,
            direct_rate: None,
            threads: 1,
        }))
    }

    fn ask(urls: &[String]) -> BoostStatus {
        status(&StatusRequest { urls: urls.to_vec() }, &StopFlag::new()).unwrap()
    }

    #[test]
    fn a_box_answers_on_its_socket_and_as_a_page() {
        let any = "127.0.0.1:0".parse().unwrap();
        let serving = Serving::start(BoxRole::Near, near(), Some(any)).unwrap();
        let own = std::process::id();
        let here = ask(&[]).boxes.into_iter().find(|one| one.pid == Some(own)).unwrap();
        assert!(here.role == BoxRole::Near && here.name.starts_with("near-"), "{here:?}");
        let url = serving.address().unwrap();
        let found = ask(std::slice::from_ref(&url));
        let remote = found.boxes.first().unwrap();
        assert_eq!((remote.name.as_str(), remote.role, remote.pid), (&*url, BoxRole::Near, None));
        assert!(remote.started_unix_s > 1.6e9, "{remote:?}");
        assert_eq!(remote.not_boosted.len(), ::boost::NotBoosted::ALL.len());
        drop(serving);
        let gone = ask(&[url]);
        assert!(gone.boxes.is_empty() && gone.silent.len() == 1, "{gone:?}");
    }

    /// A server that answers its only client with this, and holds the connection until that has gone.
    fn server(answer: Vec<u8>) -> (String, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("{}/metrics", listener.local_addr().unwrap());
        let serve = move || {
            let (mut client, _): (TcpStream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                client.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            // A client that refuses the answer closes early.
            let _ = client.write_all(&answer);
            let _ = client.read_to_end(&mut Vec::new());
        };
        (url, std::thread::spawn(serve))
    }

    #[test]
    fn hostile_answers_end_in_time_with_a_reason() {
        let long = |head: &str, piece: &str| {
            [head.as_bytes(), &piece.repeat(300 << 10).into_bytes()].concat()
        };
        let cases = [
            (Vec::new(), "no answer within"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc".to_vec(), "no answer within"),
            (b"HTTP/1.1 302 Found\r\nLocation: http://x/\r\n\r\n".to_vec(), "302"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe".to_vec(), "UTF-8"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec(), "not the page"),
            (long("HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", "x"), "cannot be read"),
            (long("HTTP/1.1 200 OK\r\nX: ", "y"), ""),
            (b"\x16\x03\x01\x02\x00".to_vec(), ""),
        ];
        let servers = cases.map(|(answer, reason)| (server(answer), reason));
        let urls: Vec<String> = servers.iter().map(|((url, _), _)| url.clone()).collect();
        let asked: Vec<_> =
            urls.into_iter().map(|url| std::thread::spawn(move || ask(&[url]))).collect();
        for (asked, ((_, server), reason)) in asked.into_iter().zip(servers) {
            let found = asked.join().unwrap();
            let [SilentBox { why, .. }] = found.silent.as_slice() else { panic!("{found:?}") };
            assert!(why.contains(reason), "{reason}: {why}");
            server.join().unwrap();
        }
    }

    #[test]
    fn urls_are_checked() {
        let check = |url: &str| StatusRequest { urls: vec![url.to_owned()] }.check();
        assert_eq!(check("127.0.0.1:9201"), Ok(()));
        assert_eq!(check("http://[::1]:9201/metrics"), Ok(()));
        for wrong in ["", "ftp://x", "http://a b", "http://u@h/"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }
}
