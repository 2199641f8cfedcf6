//! Traffic over labs and pairs.

use bench_harness::Fallible;
use host::netns::NetNs;
use host::{clock, udp};
use perf::client::{self, ClientConfig, EndAfter};
use perf::server::{Server, ServerConfig};
use perf::{ServerEvent, StopFlag};
use record::Measurement;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// One TCP flow of our own client.
pub(crate) fn tcp(
    client: &NetNs,
    server: &NetNs,
    to: Ipv4Addr,
    seconds: f64,
    congestion: Option<&str>,
) -> Fallible<Measurement> {
    let config = ClientConfig {
        end: EndAfter::Seconds(seconds),
        congestion: congestion.map(str::to_owned),
        watch_load: Duration::ZERO,
        ..ClientConfig::new(to.to_string())
    };
    let settings = ServerConfig { one_off: true, ..ServerConfig::default() };
    let listening = server.run(|| Server::bind(&settings))??;
    let done = StopFlag::new();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.run(|| listening.serve(&done, &|_: ServerEvent| ())));
        let measured = client.run(|| {
            client::run(&config, &mut |_| (), &StopFlag::new()).map(|report| report.measurement)
        });
        done.raise();
        let _ = serving.join();
        Ok(measured??)
    })
}

/// Datagrams of 1400 bytes, at `rate` or as fast as possible, in trains or singly; nobody
/// reads them.
pub(crate) fn datagrams(
    client: &NetNs,
    server: &NetNs,
    to: Ipv4Addr,
    seconds: f64,
    trains: Option<BitRate>,
) -> Fallible<()> {
    const SIZE: usize = 1400;
    const TRAIN: usize = 44;
    let sink = server.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 9)))??;
    udp::coalesce(&sink)?;
    let socket = client.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
    socket.connect((to, 9))?;
    let length = if trains.is_some() { SIZE * TRAIN } else { SIZE };
    if trains.is_some() {
        udp::segment(&socket, u16::try_from(SIZE)?)?;
    }
    let bytes = vec![0; length];
    let packet = ByteCount::from_bytes(length as u64 * 1428 / 1400);
    let (start, time) = (clock::now(), Duration::from_secs_f64(seconds));
    let mut sent = 0;
    while start.elapsed() < time {
        let due = match trains {
            Some(rate) => rate.bytes_in(start.elapsed()).bytes() / packet.bytes(),
            None => u64::MAX,
        };
        if sent >= due {
            std::thread::sleep(Duration::from_micros(200));
            continue;
        }
        match socket.send(&bytes) {
            Ok(_) => sent += 1,
            Err(error) if udp::is_full(&error) => std::thread::yield_now(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
