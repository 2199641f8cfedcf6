//! Sweeps an emulated path over round-trip times, and prints what one TCP connection reaches:
//! `sweep_a_lab 100mbit 10ms 50ms 100ms`. Needs root, or user namespaces.
#![expect(clippy::disallowed_methods, reason = "the program's own clock")]

use longhaul::lab::{LabEvent, LabRequest};
use longhaul::{Document, Event, Problem, Request, StopFlag};
use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, SystemTime};

const PORT: u16 = 5001;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    longhaul::init();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["receive"] => receive()?,
        ["send"] => send()?,
        [rate, ref rtts @ ..] => {
            println!("{:>10} {:>14} {:>10}", "RTT", "Mbit/s", "valid");
            for rtt in rtts {
                let (throughput, valid) = measure(&format!("rate={rate},rtt={rtt}"))?;
                println!("{rtt:>10} {throughput:>14} {valid:>10}");
            }
        }
        [] => eprintln!("usage: sweep_a_lab RATE RTT..."),
    }
    Ok(())
}

/// One transfer over a path: the receiver's output, and whether the path was emulated as asked.
fn measure(link: &str) -> Result<(String, bool), Problem> {
    let own = std::env::current_exe().unwrap_or_default().display().to_string();
    let request = LabRequest::new(link, [&own, "send"]).with_server(&format!("'{own}' receive"));
    let mut throughput = String::new();
    let on_event = &mut |event| match event {
        Event::Lab(LabEvent::Line { host, line }) if host == "server" => throughput = line,
        _ => {}
    };
    match longhaul::run(Request::Lab(request), on_event, &StopFlag::new())? {
        Document::Lab(lab) => Ok((throughput, lab.valid)),
        _ => unreachable!("the document is the request's"),
    }
}

fn send() -> io::Result<()> {
    let (mut stream, start) = (TcpStream::connect(("server", PORT))?, SystemTime::now());
    while start.elapsed().unwrap_or_default() < Duration::from_secs(3) {
        stream.write_all(&[0; 16 << 10])?;
    }
    Ok(())
}

fn receive() -> io::Result<()> {
    let ((mut stream, _), start) = (TcpListener::bind(("::", PORT))?.accept()?, SystemTime::now());
    let bytes = io::copy(&mut stream, &mut io::sink())?;
    let seconds = start.elapsed().unwrap_or_default().as_secs_f64();
    println!("{:.1}", bytes as f64 * 8.0 / seconds / 1e6);
    Ok(())
}
