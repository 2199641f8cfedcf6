//! To whom a token's proof is sent.

use crate::program::{Server, command, run};
use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// The parameters of the first test that reaches a rogue server.
fn first_parameters(listener: &TcpListener) -> String {
    loop {
        let mut connection = listener.accept().unwrap().0;
        connection.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut parameters = || -> io::Result<String> {
            connection.read_exact(&mut [0; 37])?;
            connection.write_all(&[9])?;
            let mut length = [0; 4];
            connection.read_exact(&mut length)?;
            let mut text = vec![0; u32::from_be_bytes(length) as usize];
            connection.read_exact(&mut text)?;
            String::from_utf8(text).map_err(io::Error::other)
        };
        // A handshake that only measures the RTT sends nothing.
        if let Ok(text) = parameters() {
            return text;
        }
    }
}

/// What a rogue server receives from this command, in which `PORT` is its port.
fn received(arguments: &[&str], list: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("list.txt"), list.replace("PORT", &port)).unwrap();
    let arguments: Vec<String> = arguments.iter().map(|word| word.replace("PORT", &port)).collect();
    let mut child = command(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
        .env("LONGHAUL_TOKEN", "0123456789abcdef")
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (send, receive) = std::sync::mpsc::channel();
    thread::spawn(move || send.send(first_parameters(&listener)));
    let text = receive.recv_timeout(Duration::from_secs(60));
    let _ = child.kill();
    let _ = child.wait();
    text.unwrap()
}

#[test]
fn servers_of_a_list_get_no_proof_of_a_token() {
    let list = "127.0.0.1 PORT 10gbit here\n";
    let listed = received(&["baseline", "--servers", "list.txt", "-4", "--rate", "1gbit"], list);
    assert!(listed.contains("\"tcp\":true") && !listed.contains("token"), "{listed}");
    let named = received(&["baseline", "127.0.0.1", "-p", "PORT", "-4"], "");
    assert!(named.contains("\"longhaul_token\":"), "{named}");
    // Nothing is sent that would prove the token elsewhere: not to itself either.
    assert!(!named.contains("0123456789abcdef"), "{named}");
}

#[test]
fn a_missing_or_wrong_token_is_named_and_a_file_has_the_right_one() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (right, wrong) =
        (write("right", "0123456789abcdef\n"), write("wrong", "fedcba9876543210\n"));
    let server = Server::start(&["--tokens", &right]);
    let test = ["test", "127.0.0.1", "-p", &server.port, "-n", "1K"];
    let with_file = |file| run(&[&test[..], &["--token-file", file]].concat());
    for output in [run(&test), with_file(&wrong)] {
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains("one of its tokens: give --token-file FILE"), "{text}");
        assert!(!text.contains("password") && text.lines().last().unwrap().contains("token"));
    }
    let admitted = with_file(&right);
    let text = String::from_utf8(admitted.stderr).unwrap();
    assert!(admitted.status.success(), "{text}");
    assert!(text.contains("warning: other users can read"), "the file's mode is 644: {text}");
}
