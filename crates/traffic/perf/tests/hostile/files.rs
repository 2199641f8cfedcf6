//! Attacks on the file that a server writes received data to (`-F`).

use crate::scripted_client::ScriptedClient;
use crate::test_server::{TestServer, run};
use iperf3_proto::State;
use perf::ServerEvent;
use perf::client::EndAfter;
use serde_json::json;
use socket2::SockRef;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("longhaul-hostile-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        Folder(folder)
    }

    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name());
        names.map(|name| name.into_string().unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn failed(event: &ServerEvent) -> bool {
    matches!(event, ServerEvent::Failed { .. })
}

fn server(file: &Path) -> TestServer {
    TestServer::with(|config| {
        config.file = Some(file.to_owned());
        config.limits.sessions = 2;
        config.limits.sessions_per_address = Some(2);
    })
}

#[test]
fn failed_clients_do_not_replace_an_existing_file() {
    let folder = Folder::new("nothing");
    let file = folder.0.join("received");
    fs::write(&file, "precious").unwrap();
    let server = server(&file);
    for asked in [json!({"tcp": true, "time": 1}), json!({"udp": true, "time": 1, "len": 1000})] {
        for steps in 1..=3 {
            server.events.lock().unwrap().clear();
            let mut client = ScriptedClient::after(&server, &asked, steps);
            for stream in &mut client.streams {
                stream.write_all(&[0; 5000]).unwrap();
            }
            assert_eq!(fs::read_to_string(&file).unwrap(), "precious", "while it runs");
            drop(client);
            server.wait_for(failed);
            assert_eq!(fs::read_to_string(&file).unwrap(), "precious", "{asked} {steps}");
        }
    }
    drop(server);
    assert_eq!(folder.names(), ["received"], "nothing is left beside it");
}

#[test]
fn a_stream_that_breaks_does_not_replace_the_file() {
    let folder = Folder::new("broken");
    let file = folder.0.join("received");
    fs::write(&file, "precious").unwrap();
    let server = server(&file);
    let mut client = ScriptedClient::after(&server, &json!({"tcp": true, "time": 1}), 3);
    let mut stream = client.streams.pop().unwrap();
    stream.write_all(&[0; 5000]).unwrap();
    // Closes with a reset.
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
    client.control.write_all(&[State::TestEnd.byte()]).unwrap();
    let ServerEvent::Failed { why, .. } = server.wait_for(failed) else { panic!() };
    assert!(why.contains("incomplete") && why.contains("reset"), "{why}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "precious");
    drop(server);
    assert_eq!(folder.names(), ["received"], "nothing is left beside it");
}

#[test]
fn tests_at_the_same_time_do_not_share_the_file() {
    let folder = Folder::new("two");
    let file = folder.0.join("received");
    let server = server(&file);
    let contents = [b'a', b'b'].map(|byte| vec![byte; 3_000_000]);
    thread::scope(|scope| {
        for (number, content) in contents.iter().enumerate() {
            let from = folder.0.join(format!("from-{number}"));
            fs::write(&from, content).unwrap();
            let mut config = server.config();
            (config.file, config.end) = (Some(from), EndAfter::Seconds(60.0));
            scope.spawn(move || run(&config).unwrap());
        }
    });
    let received = fs::read(&file).unwrap();
    assert!(contents.contains(&received), "a mixture of {} bytes", received.len());
}

#[test]
fn a_planted_symlink_is_not_followed() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("link");
    let (shared, precious) = (folder.0.join("shared"), folder.0.join("precious"));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
    fs::write(&precious, "precious").unwrap();
    let file = shared.join("received");
    symlink(&precious, &file).unwrap();
    let server = server(&file);
    let mut config = server.config();
    config.end = EndAfter::Seconds(0.2);
    assert!(run(&config).is_err());
    let ServerEvent::Failed { why, .. } = server.wait_for(failed) else { panic!() };
    assert!(why.contains("symbolic link"), "{why}");
    assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
}
