//! Files that are sent and received (`-F`).

use crate::test_server::{TestServer, run};
use perf::client::ClientConfig;
use perf::client::EndAfter;
use record::{Measurement, Protocol};
use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};
use units::ByteCount;

/// Of no whole number of blocks.
const ODD_LENGTH: usize = 1_000_003;

/// A directory of a test's own, removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("longhaul-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn fifo(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a test that must end by itself, long before its time does.
fn run_to_its_end(config: &ClientConfig) -> Measurement {
    let (sender, ended) = mpsc::channel();
    let mut config = config.clone();
    if let EndAfter::Seconds(seconds) = &mut config.end {
        *seconds = 3600.0;
    }
    thread::spawn(move || drop(sender.send(run(&config))));
    let Ok(measured) = ended.recv_timeout(Duration::from_secs(60)) else {
        panic!("a test that does not end");
    };
    measured.unwrap()
}

fn sending(server: &TestServer, file: &Path) -> ClientConfig {
    let mut config = server.config();
    config.file = Some(file.to_owned());
    config
}

#[test]
fn a_file_of_any_length_ends_the_test() {
    let folder = Folder::new("odd-file");
    let file = folder.write("from", &[7; ODD_LENGTH]);
    let server = TestServer::new();
    for protocol in [Protocol::Tcp, Protocol::Udt] {
        for streams in [1, 2] {
            // The file's length, as iperf3 asks for; more than that; nothing.
            for bytes in [Some(ODD_LENGTH as u64), Some(20_000_000), None] {
                let mut config = sending(&server, &file);
                (config.transport, config.streams) = (protocol.into(), streams);
                if let Some(bytes) = bytes {
                    config.end = EndAfter::Bytes(ByteCount::from_bytes(bytes));
                }
                let measured = run_to_its_end(&config);
                let sent: u64 = measured.streams.iter().map(|stream| stream.sent_bytes).sum();
                let received = measured.received().bytes();
                let length = ODD_LENGTH as u64;
                assert_eq!((sent, received), (length, length), "{protocol:?} {streams} {bytes:?}");
            }
        }
    }
}

#[test]
fn bytes_and_blocks_end_a_test_before_the_file_does() {
    let folder = Folder::new("long-file");
    let file = folder.write("from", &[7; ODD_LENGTH]);
    let server = TestServer::new();
    for streams in [1, 2] {
        let mut config = sending(&server, &file);
        config.streams = streams;
        config.block = Some(ByteCount::from_bytes(1000));
        config.end = EndAfter::Bytes(ByteCount::from_bytes(99_001));
        assert_eq!(run_to_its_end(&config).received().bytes(), 100_000, "blocks go whole");
        config.end = EndAfter::Blocks(77);
        assert_eq!(run_to_its_end(&config).received().bytes(), 77_000);
    }
}

#[test]
fn a_pipe_is_sent_as_it_is_written() {
    let folder = Folder::new("fifo");
    let fifo = folder.fifo("from");
    let server = TestServer::new();
    // 50 pieces of less than a block; then blocks that end the test.
    for (streams, blocks, expected) in [(1, None, 35_000), (2, None, 35_000), (1, Some(20), 20_000)]
    {
        let path = fifo.clone();
        let writer = thread::spawn(move || {
            let mut file = File::options().write(true).open(path).unwrap();
            // It fails once the test has ended.
            (0..50).try_for_each(|_| file.write_all(&[7; 700]))
        });
        let mut config = sending(&server, &fifo);
        config.streams = streams;
        config.block = Some(ByteCount::from_bytes(1000));
        config.end = blocks.map_or(config.end, EndAfter::Blocks);
        assert_eq!(run_to_its_end(&config).received().bytes(), expected, "{streams} {blocks:?}");
        let _ = writer.join().unwrap();
    }
}

#[test]
fn a_pipe_without_data_does_not_hold_up_the_end() {
    let folder = Folder::new("silent-fifo");
    let fifo = folder.fifo("from");
    let server = TestServer::new();
    for has_writer in [false, true] {
        let (ended, is_ended) = mpsc::channel::<()>();
        let path = fifo.clone();
        let writer = has_writer.then(|| {
            thread::spawn(move || {
                let file = File::options().write(true).open(path).unwrap();
                let _ = is_ended.recv();
                drop(file);
            })
        });
        let (sender, client) = mpsc::channel();
        let config = ClientConfig { end: EndAfter::Seconds(0.2), ..sending(&server, &fifo) };
        thread::spawn(move || drop(sender.send(run(&config))));
        let measured = client.recv_timeout(Duration::from_secs(60));
        let Ok(measured) = measured else { panic!("a test that never ended") };
        assert_eq!(measured.unwrap().received(), ByteCount::ZERO);
        drop(ended);
        writer.into_iter().for_each(|writer| writer.join().unwrap());
    }
}

#[test]
fn a_file_is_transferred_completely() {
    let folder = Folder::new("file");
    let content: Vec<u8> = (0..300_000u32).flat_map(u32::to_be_bytes).collect();
    let (from, to) = (folder.write("from", &content), folder.0.join("to"));
    let server = TestServer::with(|config| config.file = Some(to.clone()));
    let mut config = server.config();
    config.file = Some(from);
    config.end = EndAfter::Seconds(60.0);
    let measured = run(&config).unwrap();
    assert_eq!(measured.received().bytes(), content.len() as u64);
    assert!(fs::read(&to).unwrap() == content, "what arrived is not what was sent");
    config.file = Some(folder.0.join("none"));
    assert!(run(&config).unwrap_err().to_string().contains("none"));
    // Until the server has ended, its part of that test may come and go in the folder.
    drop(server);
    let mut left: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["from", "to"]);
}
