//! `iperf3 -c`.

use super::args::Iperf3Args;
use super::observer::{self, OutputOptions, Show};
use super::output::Output;
use super::setting::{self, HostAndDevice};
use crate::failure::{Code, DONE, FAILED, Failure};
use crate::stop;
use perf::client::{self, ClientConfig, EndAfter, TcpOptions, Transport, UdpOptions};
use perf::{Event, StopFlag};
use record::Direction;
use report::iperf3::{summary, text};
use std::time::Duration;
use units::{BitRate, ByteCount};

/// Default rate of UDP in bit/s (`UDP_RATE`).
const DATAGRAM_RATE: u64 = 1 << 20;

pub(crate) fn run(args: &Iperf3Args, host: &str, output: &mut Output) -> Result<Code, Failure> {
    let config = config(args, host)?;
    let stop = stop::on_signals();
    let options = OutputOptions::of(args);
    let flags = &args.client_flags;
    let mut show = Show::new(options, flags.title.clone(), flags.extra_data.clone());
    if options.is_verbose() {
        output.lines(&text::program(&observer::system()));
    }
    let tested = test(args, &config, &stop, &mut show, output);
    show.close(output);
    if tested == DONE && options.is_text() && !stop.is_raised() {
        output.lines(&summary::done());
    }
    Ok(tested)
}

fn test(
    args: &Iperf3Args,
    config: &ClientConfig,
    stop: &StopFlag,
    show: &mut Show,
    output: &mut Output,
) -> Code {
    let measured = client::run(
        config,
        &mut |event| match event {
            Event::Connected(started) => {
                for note in &started.notes {
                    output.warn(note);
                }
                show.begin(observer::head(&started, Some(&config.host), args), &started, output);
            }
            Event::Interval(interval) => show.row(&interval, output),
        },
        stop,
    );
    match measured {
        Ok(report) => {
            show.end(Some(&report.ours), report.theirs.as_ref(), output);
            if stop.is_raised() {
                // An interrupted client exits with 0, as in iperf3.
                show.stopped(output);
            }
            DONE
        }
        Err(error) => {
            show.fail(&error.to_string(), output);
            FAILED
        }
    }
}

fn milliseconds(value: u32) -> Duration {
    Duration::from_millis(u64::from(value))
}

/// The transport, with those options that it has.
fn transport(args: &Iperf3Args) -> Transport {
    let (common, flags) = (&args.common, &args.client_flags);
    if flags.udp {
        return Transport::Udp(UdpOptions {
            train: None,
            wide_counters: flags.udp_counters_64bit,
            segment: !flags.no_gsro,
            coalesce: !flags.no_gsro,
        });
    }
    Transport::Tcp(TcpOptions {
        mss: flags.set_mss,
        nodelay: flags.no_delay,
        mptcp: common.mptcp,
        limits_unsent: false,
        zerocopy: flags.zerocopy.then_some(true),
        skip_rx_copy: flags.skip_rx_copy,
        send_timeout: common.snd_timeout.filter(|timeout| *timeout > 0).map(milliseconds),
    })
}

fn config(args: &Iperf3Args, host: &str) -> Result<ClientConfig, Failure> {
    let (common, flags) = (&args.common, &args.client_flags);
    setting::of_client(args)?;
    let far = HostAndDevice::of(host);
    let near = setting::near(args)?;
    let bitrate = match flags.bitrate {
        Some(burst) => burst.rate,
        None if flags.udp => DATAGRAM_RATE,
        None => 0,
    };
    let rate = |bps: u64| (bps > 0).then(|| BitRate::from_bps(bps));
    let size = |bytes: u64| (bytes > 0).then(|| ByteCount::from_bytes(bytes));
    let defaults = ClientConfig::new(far.host);
    let bytes = match (flags.bytes, flags.blockcount, flags.time, &common.file) {
        // The end of the file ends the test, unless another end was given.
        (None, None, None, Some(path)) if !flags.reverse && !flags.bidir => {
            std::fs::metadata(&**path).ok().map(|file| file.len())
        }
        (bytes, ..) => bytes,
    };
    Ok(ClientConfig {
        ports: common.port.clone(),
        bind: near.address,
        device: near.device.or_else(|| far.device.map(str::to_owned)),
        local_port: flags.cport.and_then(|port| u16::try_from(port).ok()),
        family: setting::family(args),
        transport: transport(args),
        direction: match (flags.reverse, flags.bidir) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Forward,
        },
        end: match (bytes.and_then(size), flags.blockcount.filter(|count| *count > 0)) {
            (Some(bytes), _) => EndAfter::Bytes(bytes),
            (None, Some(blocks)) => EndAfter::Blocks(blocks),
            // 0 means until interrupted; the maximum is a day.
            (None, None) => match flags.time {
                None => defaults.end,
                Some(0) => EndAfter::Seconds(86_400.0),
                Some(seconds) => EndAfter::Seconds(f64::from(seconds)),
            },
        },
        omit_seconds: flags.omit,
        streams: flags.parallel,
        window: flags.window.and_then(size),
        block: flags.length.and_then(size),
        rate: rate(bitrate),
        burst: flags.bitrate.and_then(|burst| burst.blocks),
        fq_rate: flags.fq_rate.and_then(rate),
        congestion: flags.congestion.clone(),
        tos: flags.dscp.or(flags.tos),
        flow_label: flags.flowlabel,
        dont_fragment: flags.dont_fragment,
        repeating_payload: flags.repeating_payload,
        file: common.file.as_deref().map(std::path::Path::to_owned),
        core: common.affinity.map(|affinity| affinity.here),
        server_core: common.affinity.and_then(|affinity| affinity.server),
        title: flags.title.clone(),
        extra_data: flags.extra_data.clone(),
        get_server_output: flags.get_server_output,
        credentials: setting::credentials(args)?,
        receive_timeout: common.rcv_timeout.map_or(defaults.receive_timeout, milliseconds),
        keepalive: common.cntl_ka.map(setting::keepalive),
        report_every: setting::report_every(args),
        connect_timeout: flags
            .connect_timeout
            .map_or(defaults.connect_timeout, Duration::from_millis),
        watch_load: Duration::ZERO,
        ..defaults
    })
}
