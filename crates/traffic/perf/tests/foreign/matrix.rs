//! Every protocol, direction and number of streams, with every common option, with our
//! client against its server and its client against ours: both ends report the same
//! bytes.

use crate::{
    Iperf3, close, iperf3_client, is_between_tests,
    test_server::{TestServer, run, short},
};
use perf::client::{EndAfter, TcpOptions, Transport};
use perf::{ServerEvent, client::ClientConfig};
use record::{Direction, Protocol};
use stall_retry::Gauge;
use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use units::ByteCount;

/// Combinations tested concurrently: each is a few Mbit/s.
const AT_ONCE: usize = 12;

#[derive(Debug, Clone, Copy)]
struct Cell {
    protocol: Protocol,
    direction: Direction,
    streams: u32,
    options: &'static [&'static str],
}

/// Options besides TCP_NODELAY: a rate that both ends sustain, so that buffers are nearly
/// empty and bytes comparable.
const OPTIONS: [&[&str]; 6] = [
    &["-t1", "-b10M"],
    &["-t1", "-b3M", "-l4K"],
    &["-t2", "-b3M", "-l4K", "-O1"],
    &["-n400K", "-b4M", "-l4K"],
    &["-t1", "-b3M", "-l4K", "-w128K"],
    &["-t1", "-b3M", "-l1000"],
];

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for protocol in [Protocol::Tcp, Protocol::Udp] {
        for direction in [Direction::Forward, Direction::Reverse, Direction::Both] {
            for streams in [1, 8] {
                for options in OPTIONS {
                    cells.push(Cell { protocol, direction, streams, options });
                }
            }
        }
    }
    cells
}

/// Runs `test` for every combination, several at a time; reports all failures.
fn each(test: impl Fn(Cell) -> Result<(), String> + Sync) {
    let (cells, next, failed) = (cells(), AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(cell) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // One that failed on a busy host is repeated.
                    if let Err(error) =
                        test(*cell).or_else(|_| test(*cell)).or_else(|_| test(*cell))
                    {
                        failed.lock().unwrap().push(format!("{cell:?}: {error}"));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {}:\n{}", failed.len(), cells.len(), failed.join("\n"));
}

/// Bytes of one direction at both ends.
fn agree(cell: Cell, what: &str, sent: u64, received: u64, gauge: &Gauge) -> Result<(), String> {
    // The warm-up ends by each end's clock: up to 30 ms of two seconds differ.
    let slack = if cell.options.contains(&"-O1") { 0.02 } else { 0.01 };
    let asked = cell.options.iter().find_map(|option| option.strip_prefix("-l"));
    let block = match (asked, cell.protocol) {
        (Some("4K"), _) => 4_096,
        (Some(_), _) => 1_000,
        (None, Protocol::Tcp | Protocol::Udt) => 131_072,
        // Fits the loopback's segment.
        (None, Protocol::Udp) => 32_768,
    };
    let blocks = 2 * block * u64::from(cell.streams);
    if close(sent, received, slack, blocks, gauge, 1.0) && received > 0 {
        Ok(())
    } else {
        Err(format!("{what}: sent {sent}, received {received}"))
    }
}

pub(crate) fn our_client(program: &str) {
    each(|cell| {
        let mut server = Iperf3::start(program);
        let config = config(cell, server.1);
        let gauge = Gauge::start();
        let measured = loop {
            match run(&config) {
                // Another program may have bound the port before iperf3 did.
                Err(_) if server.has_ended() => return Err("iperf3 -s ended".to_owned()),
                Err(error) if is_between_tests(&error) => thread::sleep(Duration::from_millis(20)),
                measured => break measured.map_err(|error| error.to_string())?,
            }
        };
        let both = usize::from(cell.direction == Direction::Both) + 1;
        if measured.streams.len() != cell.streams as usize * both {
            return Err(format!("{} streams", measured.streams.len()));
        }
        for reverse in [false, true] {
            let way = measured.one_direction(reverse);
            if way.streams.is_empty() {
                continue;
            }
            let sent = way.streams.iter().map(|stream| stream.sent_bytes).sum();
            agree(
                cell,
                if reverse { "back" } else { "there" },
                sent,
                way.received().bytes(),
                &gauge,
            )?;
        }
        Ok(())
    });
}

fn config(cell: Cell, port: u16) -> ClientConfig {
    let mut config = short(([127, 0, 0, 1], port).into());
    config.transport = match cell.protocol {
        Protocol::Tcp => Transport::Tcp(TcpOptions { nodelay: true, ..TcpOptions::default() }),
        other => other.into(),
    };
    config.direction = cell.direction;
    config.streams = cell.streams;
    for option in cell.options {
        let size = || {
            ByteCount::from_bytes(match &option[2..] {
                "400K" => 400 << 10,
                "4K" => 4 << 10,
                "128K" => 128 * 1024,
                plain => plain.parse().unwrap(),
            })
        };
        match &option[..2] {
            "-t" => config.end = EndAfter::Seconds(option[2..].parse().unwrap()),
            "-O" => config.omit_seconds = option[2..].parse().unwrap(),
            "-b" => config.rate = Some(option[2..].to_lowercase().parse().unwrap()),
            "-n" => config.end = EndAfter::Bytes(size()),
            "-w" => config.window = Some(size()),
            "-l" => config.block = Some(size()),
            other => panic!("no option {other}"),
        }
    }
    config
}

pub(crate) fn its_client(program: &str) {
    each(|cell| {
        let (server, gauge) = (TestServer::new(), Gauge::start());
        let streams = format!("-P{}", cell.streams);
        let mut options = vec![streams.as_str()];
        options.extend(cell.options);
        // Otherwise small blocks wait for delayed ACKs of 40 ms.
        options.push(if cell.protocol == Protocol::Udp { "-u" } else { "-N" });
        match cell.direction {
            Direction::Forward => {}
            Direction::Reverse => options.push("-R"),
            Direction::Both => options.push("--bidir"),
        }
        let report = iperf3_client(program, &server, &options);
        if let Some(error) = report.get("error") {
            return Err(error.to_string());
        }
        let ServerEvent::Finished { summary, .. } =
            server.wait_for(|event| matches!(event, ServerEvent::Finished { .. }))
        else {
            unreachable!()
        };
        // What each end reports as sent and received.
        let bytes = |sending: bool, client: bool| -> u64 {
            let results = if client { &summary.theirs } else { &summary.ours };
            let back = match cell.direction {
                Direction::Forward => false,
                Direction::Reverse => true,
                Direction::Both => sending != client,
            };
            let each = cell.streams as usize;
            let streams = results.streams.iter().enumerate();
            let of_way = streams.filter(|(index, _)| match cell.direction {
                Direction::Both => (*index >= each) == back,
                _ => true,
            });
            of_way.map(|(_, stream)| stream.byte_count()).sum()
        };
        if cell.direction != Direction::Reverse {
            agree(cell, "there", bytes(true, true), bytes(false, false), &gauge)?;
        }
        if cell.direction != Direction::Forward {
            agree(cell, "back", bytes(true, false), bytes(false, true), &gauge)?;
        }
        Ok(())
    });
}
