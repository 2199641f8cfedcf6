//! A real nginx on loopback: the edge, and an origin. Without nginx the tests count as ignored.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use edge::{
    Authorities, CacheDirectory, CacheStatus, EdgeConfig, EdgeError, Nginx, Output, Pseudonym,
    Totals, configuration,
};
use host::clock;
use host::process_group::ProcessGroup;
use libtest_mimic::{Arguments, Trial};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;
use units::ByteCount;

type Test = (&'static str, fn());

const TESTS: [Test; 7] = [
    ("objects_are_fetched_once_and_outlive_their_origin", objects),
    ("a_range_fetches_its_slices_only", ranges),
    ("waiting_clients_fetch_nothing", waiting),
    ("credentials_methods_and_loops_are_no_business_of_the_cache", refused),
    ("names_that_differ_in_an_encoded_character_are_two_objects", keys),
    ("a_directory_keeps_its_objects", kept),
    ("what_nginx_refuses_is_said", errors),
];

const SLICE: u64 = 64 << 10;
const WAIT: Duration = Duration::from_secs(20);

fn main() {
    let arguments = Arguments::from_args();
    let has_nginx = edge::program().is_some();
    if !has_nginx {
        eprintln!("nginx is not installed: tests are skipped");
    }
    let trials = TESTS.into_iter().map(|(name, test)| {
        let run = move || {
            test();
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(!has_nginx)
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}

/// A port that was free a moment ago.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// nginx with a file of 200 kB, which is fresh for a second, and its log of requests.
struct Origin {
    group: ProcessGroup,
    address: SocketAddr,
    folder: TempDir,
}

impl Origin {
    fn start() -> Self {
        let address = free();
        let folder = tempfile::Builder::new()
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .tempdir()
            .unwrap();
        std::fs::write(folder.path().join("file"), pattern()).unwrap();
        let text = format!(
            "daemon off; pid o.pid; error_log stderr; events {{}}\nhttp {{ log_format o \
             '$status $body_bytes_sent $http_via'; access_log origin.log o;\nserver {{ listen \
             {address}; root .; add_header Cache-Control max-age=1;\nlocation /slow/ {{ alias ./; \
             limit_rate 400k; }} }} }}"
        );
        std::fs::write(folder.path().join("o.conf"), text).unwrap();
        let mut command = Command::new(edge::program().unwrap());
        command.args(["-p", "./", "-c", "o.conf", "-e", "stderr"]).current_dir(folder.path());
        let (group, _) = ProcessGroup::start(command.stderr(Stdio::null())).unwrap();
        until(|| TcpStream::connect(address).is_ok());
        Origin { group, address, folder }
    }

    /// The bytes of bodies that it has sent.
    fn sent(&self) -> Vec<u64> {
        let log = std::fs::read_to_string(self.folder.path().join("origin.log")).unwrap();
        log.lines().map(|line| line.split(' ').nth(1).unwrap().parse().unwrap()).collect()
    }

    fn edge(&self) -> (Nginx, SocketAddr) {
        let config = self.config();
        (Nginx::start(&config).unwrap(), config.listen)
    }

    fn config(&self) -> EdgeConfig {
        EdgeConfig {
            origin: format!("http://{}", self.address).parse().unwrap(),
            listen: free(),
            slice: Some(ByteCount::from_bytes(SLICE)),
            max_size: ByteCount::from_bytes(10_000_000),
            fresh: None,
            cache: CacheDirectory::Private,
            pseudonym: Pseudonym::of(host::random::seed()),
            authorities: Authorities::ALL[0],
            keeps_user: host::identity::must_stay_root(),
        }
    }
}

fn pattern() -> Vec<u8> {
    (0..200_000u32).map(|index| (index % 251) as u8).collect()
}

/// Waits, with a deadline that only a broken machine reaches.
fn until(mut is_so: impl FnMut() -> bool) {
    let give_up = clock::now() + WAIT;
    while !is_so() {
        assert!(clock::now() < give_up, "not within {WAIT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A request's answer: status, head, body.
fn ask(server: SocketAddr, request: &str, headers: &str) -> (u16, String, Vec<u8>) {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(WAIT)).unwrap();
    let request = format!("{request} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, head, answer.split_off(end + 4))
}

fn cache_status(head: &str) -> &str {
    let header = head.lines().find_map(|line| line.strip_prefix("Cache-Status: longhaul-edge; "));
    header.unwrap_or("none")
}

/// The totals once so many requests are in the log.
fn totals(nginx: &Nginx, requests: u64) -> Totals {
    until(|| nginx.totals().all() >= requests);
    nginx.totals()
}

/// Cold, warm, expired, and without its origin.
fn objects() {
    let mut origin = Origin::start();
    let (nginx, edge) = origin.edge();
    let ask = |expected: &str| {
        let (status, head, body) = ask(edge, "GET /file", "");
        assert_eq!((status, cache_status(&head), body == pattern()), (200, expected, true));
    };
    ask("fwd=uri-miss");
    ask("hit");
    assert_eq!(origin.sent().iter().sum::<u64>(), 200_000);
    // Fresh for a second, which nginx counts in whole ones.
    std::thread::sleep(Duration::from_millis(2100));
    ask("fwd=stale; fwd-status=304");
    assert_eq!(origin.sent().iter().sum::<u64>(), 200_000);
    origin.group.terminate(WAIT).unwrap();
    std::thread::sleep(Duration::from_millis(2100));
    ask("hit; detail=stale");
    let totals = totals(&nginx, 4);
    for status in
        [CacheStatus::Miss, CacheStatus::Hit, CacheStatus::Revalidated, CacheStatus::Stale]
    {
        assert_eq!(totals.with(status), 1, "{totals:?}");
    }
    assert_eq!((totals.from_cache(), totals.sent.bytes()), (3, 800_000));
    assert!((200_000..210_000).contains(&totals.fetched.bytes()), "{totals:?}");
    assert!(nginx.connections().unwrap().accepted >= 4);
    assert_eq!(nginx.stop().unwrap().all(), 4);
    assert!(TcpStream::connect(edge).is_err());
}

/// Of four slices one is fetched, then two more.
fn ranges() {
    let origin = Origin::start();
    let (nginx, edge) = origin.edge();
    let (status, _, body) = ask(edge, "GET /file", "Range: bytes=70000-70099\r\n");
    assert_eq!((status, body), (206, pattern()[70_000..70_100].to_vec()));
    assert_eq!(origin.sent(), [SLICE]);
    let (status, head, body) = ask(edge, "GET /file", "Range: bytes=70000-\r\n");
    assert_eq!((status, cache_status(&head), body), (206, "hit", pattern()[70_000..].to_vec()));
    assert_eq!(origin.sent(), [SLICE, SLICE, 200_000 - 3 * SLICE]);
    assert_eq!(ask(edge, "GET /file", "Range: bytes=900000-\r\n").0, 416);
    drop(nginx);
}

/// Twenty clients ask for one object while it is fetched.
fn waiting() {
    let origin = Origin::start();
    let (nginx, edge) = origin.edge();
    std::thread::scope(|scope| {
        let clients = [(); 20].map(|()| scope.spawn(|| ask(edge, "GET /slow/file", "").2));
        for client in clients {
            assert!(client.join().unwrap() == pattern());
        }
    });
    assert_eq!(origin.sent().iter().sum::<u64>(), 200_000);
    let totals = totals(&nginx, 20);
    assert_eq!((totals.with(CacheStatus::Miss), totals.from_cache()), (1, 19));
}

/// Objects whose names differ in an encoded character only, behind a prefix.
fn keys() {
    let origin = Origin::start();
    let behind = format!("http://{}/slow", origin.address).parse().unwrap();
    let config = EdgeConfig { origin: behind, ..origin.config() };
    let _nginx = Nginx::start(&config).unwrap();
    for (request, status) in [("GET /file?a=b", 200), ("GET /file%3Fa=b", 404)] {
        assert_eq!(ask(config.listen, request, "").0, status, "{request}");
    }
}

/// A directory that keeps objects over a restart.
fn kept() {
    let origin = Origin::start();
    // Root takes no directory below one that others can write to.
    let base = if host::identity::is_root() { "/run".into() } else { std::env::temp_dir() };
    let folder = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .tempdir_in(base)
        .unwrap();
    let path = folder.path().join("cache").display().to_string();
    let config = EdgeConfig {
        cache: CacheDirectory::At(path.parse().unwrap()),
        fresh: Some(Duration::from_secs(600)),
        ..origin.config()
    };
    for expected in ["fwd=uri-miss", "fwd=stale; fwd-status=304"] {
        let nginx = Nginx::start(&config).unwrap();
        let (status, head, body) = ask(config.listen, "GET /file", "");
        assert_eq!((status, cache_status(&head), body == pattern()), (200, expected, true));
        // The origin's objects are fresh for a second.
        std::thread::sleep(Duration::from_millis(2100));
        nginx.stop().unwrap();
    }
    assert_eq!(origin.sent().iter().sum::<u64>(), 200_000);
    let missing = CacheDirectory::At(format!("{path}/none/cache").parse().unwrap());
    let started = Nginx::start(&EdgeConfig { cache: missing, ..origin.config() });
    assert_eq!(started.is_err(), host::identity::is_root(), "its parent is missing");
}

fn refused() {
    let origin = Origin::start();
    let config = origin.config();
    let nginx = Nginx::start(&config).unwrap();
    let edge = config.listen;
    for header in ["Authorization: Basic eDp5\r\n", "Cookie: a=b\r\n"] {
        for _ in 0..2 {
            let (status, head, _) = ask(edge, "GET /file", header);
            assert_eq!((status, cache_status(&head)), (200, "fwd=bypass"), "{header}");
        }
    }
    // Nothing of that is stored, and another name in Host is no other object.
    assert_eq!(cache_status(&ask(edge, "GET /file", "").1), "fwd=uri-miss");
    assert_eq!(cache_status(&ask(edge, "GET /file", "X-Forwarded-Host: y\r\n").1), "hit");
    assert_eq!(ask(edge, "GET http://elsewhere.example/none", "").0, 404);
    for method in ["POST", "PUT", "DELETE", "PURGE"] {
        assert_eq!(ask(edge, &format!("{method} /file"), "").0, 403, "{method}");
    }
    let via = std::fs::read_to_string(origin.folder.path().join("origin.log")).unwrap();
    let via = via.lines().next().unwrap().split(' ').nth(3).unwrap().to_owned();
    assert_eq!(ask(edge, "GET /file", &format!("Via: 1.1 {via}\r\n")).0, 508);
    assert_eq!(totals(&nginx, 12).with(CacheStatus::Bypass), 4);
}

/// An address in use, a name that does not resolve, and what the configuration needs of a host.
fn errors() {
    let origin = Origin::start();
    let taken = EdgeConfig { listen: origin.address, ..origin.config() };
    let error = Nginx::start(&taken).unwrap_err();
    assert!(matches!(&error, EdgeError::Ended(why) if why.contains("98")), "{error}");
    let name = "http://name.invalid".parse().unwrap();
    let error = Nginx::start(&EdgeConfig { origin: name, ..origin.config() }).unwrap_err();
    assert!(matches!(&error, EdgeError::Configuration(why) if why.contains("name.invalid")));
    // The printed form is valid as well, with TLS and whole objects.
    let folder = tempfile::tempdir().unwrap();
    let config = EdgeConfig {
        origin: format!("https://{}/a/b", origin.address).parse().unwrap(),
        slice: None,
        fresh: Some(Duration::from_secs(60)),
        ..origin.config()
    };
    let has_authorities = Path::new(Authorities::ALL[0].path()).exists();
    let text = configuration(&config, Output::Files);
    std::fs::write(folder.path().join("edge.conf"), text).unwrap();
    let mut command = Command::new(edge::program().unwrap());
    command.args(["-t", "-p", "./", "-c", "edge.conf", "-e", "stderr"]);
    let checked = command.current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success() || !has_authorities, "{said}");
}
