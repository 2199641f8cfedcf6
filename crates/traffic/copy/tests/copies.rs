//! Copies between a server and a client of this process, over both transports.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

use copy::{
    Choice, CopyEnd, CopyError, CopyRequest, CopyServer, CopyServerConfig, Progress, Root, Summary,
    Transport, copy,
};
use host::stop::StopFlag;
use std::fs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

const TOKEN: &str = "0123456789abcdef0123456789abcdef";
const BLOCK: usize = copy::protocol::BLOCK_BYTES;

/// Directories of both ends, and a server of the second one.
struct Ends {
    near: tempfile::TempDir,
    far: tempfile::TempDir,
    port: u16,
    stop: StopFlag,
    server: Option<std::thread::JoinHandle<()>>,
}

impl Ends {
    fn new(is_writable: bool) -> Self {
        let (near, far) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let config = CopyServerConfig {
            bind: Some((Ipv4Addr::LOCALHOST, 0).into()),
            port: 0,
            root: Root::below(far.path(), is_writable).unwrap(),
            tokens: vec!["another token of this server".into(), TOKEN.into()],
            max_copies: 4,
        };
        let server = CopyServer::bind(config).unwrap();
        let port = server.local_address().unwrap().port();
        let stop = StopFlag::new();
        let stopped = stop.clone();
        let server = std::thread::spawn(move || server.serve(&stopped, &StopFlag::new(), &|_| {}));
        Ends { near, far, port, stop, server: Some(server) }
    }

    fn near(&self, path: &str) -> CopyEnd {
        CopyEnd::Local(self.near.path().join(path))
    }

    fn far(path: &str) -> CopyEnd {
        CopyEnd::Remote { host: "127.0.0.1".into(), path: path.into() }
    }

    fn plan(&self, sources: &[CopyEnd], destination: CopyEnd, transport: Transport) -> CopyRequest {
        CopyRequest {
            token: Some(TOKEN.into()),
            port: self.port,
            transport: Choice::Only(transport),
            streams: 3,
            ..CopyRequest::new(sources.to_vec(), destination)
        }
    }

    fn copy(
        &self,
        sources: &[CopyEnd],
        to: CopyEnd,
        over: Transport,
    ) -> Result<Summary, CopyError> {
        run(&self.plan(sources, to, over))
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

fn run(plan: &CopyRequest) -> Result<Summary, CopyError> {
    let (progress, stop) = (Progress::default(), StopFlag::new());
    copy(plan, &progress, &stop, &|_| {})
}

const BOTH: [Transport; 2] = [Transport::UdtNative, Transport::Tcp];

fn bytes(length: usize, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 11) as u8
    };
    (0..length).map(next).collect()
}

/// Files of lengths around the block's, names that programs stumble over, links, holes,
/// empty directories, permissions and old times.
fn tree(root: &Path) {
    fs::create_dir_all(root.join("deep/er")).unwrap();
    fs::create_dir(root.join("empty directory")).unwrap();
    let lengths = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 17];
    for (index, length) in lengths.into_iter().enumerate() {
        fs::write(root.join(format!("deep/f{length}")), bytes(length, index as u32)).unwrap();
    }
    let long = "x".repeat(255);
    for name in ["new\nline", "-rf", "\u{1b}[31m", "a b", "\u{e9}\u{fffd}", &long] {
        fs::write(root.join("deep/er").join(name), name).unwrap();
    }
    symlink("deep/f1", root.join("link")).unwrap();
    symlink("nowhere", root.join("deep/dangling")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(40 * BLOCK as u64 + 5).unwrap();
    sparse.write_all_at(b"middle", 20 * BLOCK as u64).unwrap();
    fs::set_permissions(root.join("link"), fs::Permissions::from_mode(0o751)).unwrap();
    fs::set_permissions(root.join("deep"), fs::Permissions::from_mode(0o750)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let file = fs::File::options().write(true).open(root.join("deep/f1")).unwrap();
    file.set_modified(old).unwrap();
}

/// Asserts that two trees are the same, and gives the number of entries.
fn assert_same(one: &Path, other: &Path) -> u64 {
    let names = |path: &Path| {
        let mut names: Vec<_> =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (a, b) = (fs::symlink_metadata(one).unwrap(), fs::symlink_metadata(other).unwrap());
    assert_eq!(a.file_type(), b.file_type(), "{other:?}");
    assert_eq!(a.mtime_nsec(), b.mtime_nsec(), "{other:?}");
    assert_eq!(a.mtime(), b.mtime(), "{other:?}");
    if a.is_symlink() {
        assert_eq!(fs::read_link(one).unwrap(), fs::read_link(other).unwrap());
        return 1;
    }
    assert_eq!(a.mode(), b.mode(), "{other:?}");
    if a.is_dir() {
        assert_eq!(names(one), names(other), "{other:?}");
        let each = |name| assert_same(&one.join(&name), &other.join(&name));
        return 1 + names(one).into_iter().map(each).sum::<u64>();
    }
    assert!(fs::read(one).unwrap() == fs::read(other).unwrap(), "{other:?}");
    1
}

#[test]
fn trees_are_copied_both_ways() {
    for over in BOTH {
        let ends = Ends::new(true);
        tree(&ends.near.path().join("tree"));
        let up = ends.copy(&[ends.near("tree")], Ends::far("copy"), over).unwrap();
        let entries = assert_same(&ends.near.path().join("tree"), &ends.far.path().join("copy"));
        assert_eq!((up.figures.entries, up.figures.problems), (entries, 0));
        assert_eq!(up.transport, over);
        let sparse = fs::metadata(ends.far.path().join("copy/sparse")).unwrap();
        assert!(sparse.blocks() * 512 <= 2 * BLOCK as u64, "{}", sparse.blocks());

        let down = ends.copy(&[Ends::far("copy")], ends.near(""), over).unwrap();
        assert_same(&ends.near.path().join("tree"), &ends.near.path().join("copy"));
        assert_eq!(down.figures.entries, entries);

        // Once more: nothing is left to send.
        let again = ends.copy(&[ends.near("copy/.")], Ends::far("."), over).unwrap();
        assert_eq!((again.figures.bytes, again.figures.entries), (0, entries));
        assert_same(&ends.near.path().join("tree"), &ends.far.path().join("copy"));
    }
}

#[test]
fn what_is_there_is_not_sent_and_flipped_bits_are_repaired() {
    let ends = Ends::new(true);
    let whole = bytes(20 * BLOCK + 99, 7);
    fs::write(ends.near.path().join("file"), &whole).unwrap();
    // The incomplete copy of an earlier attempt: some blocks, two of them damaged, and a
    // hole between them.
    let partial = fs::File::create(ends.far.path().join(".file.longhaul-part")).unwrap();
    partial.write_all_at(&whole[..8 * BLOCK], 0).unwrap();
    partial.write_all_at(&whole[12 * BLOCK..14 * BLOCK], 12 * BLOCK as u64).unwrap();
    for at in [3 * BLOCK + 5, 12 * BLOCK] {
        partial.write_all_at(&[!whole[at]], at as u64).unwrap();
    }
    drop(partial);
    let summary = ends.copy(&[ends.near("file")], Ends::far("file"), Transport::UdtNative).unwrap();
    assert!(fs::read(ends.far.path().join("file")).unwrap() == whole);
    assert_eq!(summary.figures.kept_bytes, 8 * BLOCK as u64);
    assert_eq!(summary.figures.bytes, (whole.len() - 8 * BLOCK) as u64);
    assert_eq!(fs::read_dir(ends.far.path()).unwrap().count(), 1);

    // A new version: the blocks that are the same come from the old file.
    let mut changed = whole.clone();
    changed[5 * BLOCK] ^= 1;
    changed.truncate(18 * BLOCK);
    fs::write(ends.near.path().join("file"), &changed).unwrap();
    let summary = ends.copy(&[ends.near("file")], Ends::far(""), Transport::Tcp).unwrap();
    assert_eq!(summary.problems, [""; 0]);
    assert!(fs::read(ends.far.path().join("file")).unwrap() == changed);
    assert_eq!(summary.figures.bytes, BLOCK as u64);
}

#[test]
fn a_stopped_copy_continues() {
    let ends = Ends::new(true);
    let whole = bytes(64 * BLOCK, 9);
    fs::write(ends.near.path().join("file"), &whole).unwrap();
    let mut plan = ends.plan(&[ends.near("file")], Ends::far("file"), Transport::UdtNative);
    plan.limit = Some("160mbit".parse().unwrap());
    let (progress, stop) = (Progress::default(), StopFlag::new());
    let stopped = std::thread::scope(|scope| {
        let copied = scope.spawn(|| copy(&plan, &progress, &stop, &|_| {}));
        while progress.figures().written_bytes == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        stop.raise();
        copied.join().unwrap()
    });
    assert_eq!(stopped, Err(CopyError::Interrupted));
    assert!(!ends.far.path().join("file").exists());
    plan.limit = None;
    // The server's end of the first copy may still hold the file for a moment.
    let mut summary = run(&plan).unwrap();
    for _ in 0..100 {
        if summary.figures.problems == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
        summary = run(&plan).unwrap();
    }
    assert!(fs::read(ends.far.path().join("file")).unwrap() == whole);
    let all = whole.len() as u64;
    assert!(summary.figures.bytes < all, "{:?}", summary.figures);
    assert_eq!(summary.figures.bytes + summary.figures.kept_bytes, all);
}

#[test]
fn wildcards_are_expanded_at_the_far_end() {
    let ends = Ends::new(false);
    fs::create_dir(ends.far.path().join("logs")).unwrap();
    for name in ["a.gz", "b.gz", "c.txt", ".hidden.gz", "[x].gz"] {
        fs::write(ends.far.path().join("logs").join(name), name).unwrap();
    }
    let names = |path: &str| {
        let entries = fs::read_dir(ends.near.path().join(path)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    for (directory, pattern, expected) in [
        ("1", "logs/*.gz", &["[x].gz", "a.gz", "b.gz"][..]),
        ("2", "l*/[ab].gz", &["a.gz", "b.gz"]),
        ("3", "logs/[x].gz", &["[x].gz"]),
        ("4", "/logs/./?.txt", &["c.txt"]),
        ("5", "", &["logs"]),
    ] {
        fs::create_dir(ends.near.path().join(directory)).unwrap();
        ends.copy(&[Ends::far(pattern)], ends.near(directory), Transport::Tcp).unwrap();
        assert_eq!(names(directory), expected, "{pattern}");
    }
    let none = ends.copy(&[Ends::far("logs/*.zip")], ends.near("."), Transport::Tcp);
    assert!(matches!(none, Err(CopyError::Refused(why)) if why.contains("nothing matches")));
}

#[test]
fn nothing_outside_the_root_is_read_or_written() {
    let ends = Ends::new(true);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), ends.far.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), ends.far.path().join("link")).unwrap();
    fs::write(ends.near.path().join("file"), "data").unwrap();
    let over = Transport::Tcp;
    let escapes =
        ["out/secret", "../secret", "out/*", "logs/../../secret", "/out/secret", "out/../../x"];
    for path in escapes {
        let read = ends.copy(&[Ends::far(path)], ends.near(""), over);
        assert!(matches!(read, Err(CopyError::Refused(_))), "{path}: {read:?}");
        let written = ends.copy(&[ends.near("file")], Ends::far(path), over);
        assert!(matches!(written, Err(CopyError::Refused(_))), "{path}: {written:?}");
    }
    // A link itself can be asked for: it is not followed, nor created where it leads out.
    let link = ends.copy(&[Ends::far("link")], ends.near(""), over).unwrap();
    assert_eq!((link.figures.problems, link.figures.bytes), (1, 0));
    assert!(link.problems[0].contains("leads out"), "{:?}", link.problems);
    // A directory with the name of a link to outside is not written through it.
    fs::create_dir(ends.near.path().join("out")).unwrap();
    fs::write(ends.near.path().join("out/secret"), "overwritten").unwrap();
    let through = ends.copy(&[ends.near("out")], Ends::far(""), over).unwrap();
    assert_eq!(through.figures.entries, 0, "{:?}", through.problems);
    // Nor is a file of that name: it takes the link's place.
    fs::write(ends.near.path().join("link"), "new").unwrap();
    ends.copy(&[ends.near("link")], Ends::far(""), over).unwrap();
    assert_eq!(fs::read(ends.far.path().join("link")).unwrap(), b"new");
    assert_eq!(fs::read(outside.path().join("secret")).unwrap(), b"secret");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(ends.near.path()).unwrap().count(), 3);
}

#[test]
fn planted_partial_files_are_replaced() {
    let ends = Ends::new(true);
    fs::write(ends.near.path().join("file"), "data").unwrap();
    fs::write(ends.far.path().join("victim"), "mine").unwrap();
    let partial = ends.far.path().join(".file.longhaul-part");
    for plant in [0, 1] {
        match plant {
            0 => symlink("victim", &partial).unwrap(),
            _ => fs::hard_link(ends.far.path().join("victim"), &partial).unwrap(),
        }
        ends.copy(&[ends.near("file")], Ends::far(""), Transport::Tcp).unwrap();
        assert_eq!(fs::read(ends.far.path().join("victim")).unwrap(), b"mine");
        assert_eq!(fs::read(ends.far.path().join("file")).unwrap(), b"data");
    }
}

#[test]
fn set_user_id_bits_and_devices_stay_behind() {
    let ends = Ends::new(true);
    fs::create_dir(ends.near.path().join("tree")).unwrap();
    fs::write(ends.near.path().join("tree/program"), "x").unwrap();
    let mode = fs::Permissions::from_mode(0o6755);
    fs::set_permissions(ends.near.path().join("tree/program"), mode).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(ends.near.path().join("tree/socket"));
    drop(socket.unwrap());
    let summary = ends.copy(&[ends.near("tree")], Ends::far(""), Transport::Tcp).unwrap();
    assert_eq!(summary.figures.problems, 1);
    assert!(summary.problems[0].contains("tree/socket"), "{:?}", summary.problems);
    let copied = fs::metadata(ends.far.path().join("tree/program")).unwrap();
    assert_eq!(copied.mode() & 0o7777, 0o755);
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_reported() {
    let ends = Ends::new(true);
    let path = ends.near.path().join("growing");
    fs::write(&path, bytes(40 * BLOCK, 3)).unwrap();
    let mut plan = ends.plan(&[ends.near("growing")], Ends::far(""), Transport::Tcp);
    plan.limit = Some("100mbit".parse().unwrap());
    let (progress, stop) = (Progress::default(), StopFlag::new());
    let summary = std::thread::scope(|scope| {
        let copied = scope.spawn(|| copy(&plan, &progress, &stop, &|_| {}));
        while progress.figures().bytes == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        fs::File::options().append(true).open(&path).unwrap().write_all(b"more").unwrap();
        copied.join().unwrap().unwrap()
    });
    assert_eq!(summary.figures.problems, 1);
    assert!(summary.problems[0].contains("changed"), "{:?}", summary.problems);
    assert!(!ends.far.path().join("growing").exists());
}

#[test]
fn errors_name_the_remedy() {
    let ends = Ends::new(false);
    fs::write(ends.near.path().join("file"), "x").unwrap();
    fs::create_dir(ends.near.path().join("d")).unwrap();
    fs::write(ends.near.path().join("d/file"), "y").unwrap();
    let over = Transport::Tcp;
    let said = |result: Result<Summary, CopyError>| result.unwrap_err().to_string();
    let file = || ends.near("file");
    let read_only = said(ends.copy(&[file()], Ends::far(""), over));
    assert!(read_only.contains("‹writable›"), "{read_only}");
    let twice = said(ends.copy(&[file(), ends.near("d/file")], Ends::far(""), over));
    assert!(twice.contains("two sources"), "{twice}");
    let missing = said(ends.copy(&[ends.near("none")], Ends::far(""), over));
    assert!(missing.contains("none: No such file"), "{missing}");
    let missing = said(ends.copy(&[Ends::far("none")], ends.near(""), over));
    assert!(missing.contains("none: No such file"), "{missing}");
    let nowhere = said(ends.copy(&[Ends::far("x*")], ends.near("no/such/"), over));
    assert!(nowhere.contains("no such directory"), "{nowhere}");
    let mut plan = ends.plan(&[Ends::far("x")], ends.near(""), over);
    plan.token = Some("a token of nobody here".into());
    let refused = said(run(&plan));
    assert!(refused.contains("token") || refused.contains("closed"), "{refused}");
}

#[test]
fn idle_and_unknown_connections_are_closed_and_clients_are_served_meanwhile() {
    let ends = Ends::new(false);
    fs::write(ends.far.path().join("file"), "x").unwrap();
    let address = (Ipv4Addr::LOCALHOST, ends.port);
    // Fewer than one address may have, each with half a preamble.
    let mut half: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = std::net::TcpStream::connect(address).unwrap();
            stream.write_all(b"LHCOPY\0").unwrap();
            stream
        })
        .collect();
    let mut unknown = std::net::TcpStream::connect(address).unwrap();
    unknown.write_all(&[b"LHCOPY\0\x01".as_slice(), &[7; 32]].concat()).unwrap();
    ends.copy(&[Ends::far("file")], ends.near(""), Transport::Tcp).unwrap();
    assert_eq!(fs::read(ends.near.path().join("file")).unwrap(), b"x");
    // All of them are closed, not only the first.
    half.push(unknown);
    for mut stream in half {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut byte = [0];
        let read = std::io::Read::read(&mut stream, &mut byte);
        assert!(!matches!(read, Ok(1)), "{read:?}");
        assert!(!matches!(&read, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock));
    }
}
