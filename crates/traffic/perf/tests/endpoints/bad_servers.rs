//! Servers that stall, disconnect or send garbage: the client reports one clear error
//! in one line, and never hangs.

use crate::test_server::{run, short};
use iperf3_proto::State;
use perf::client::EndAfter;
use perf::{PerfError, StopFlag, client};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
    time::Duration,
};
use units::ByteCount;

/// A scripted server: reads a cookie, then runs the script.
fn client(act: impl FnOnce(TcpStream, &TcpListener) + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        control.read_exact(&mut [0; 37]).unwrap();
        act(control, &listener);
    });
    address
}

fn failure(act: impl FnOnce(TcpStream, &TcpListener) + Send + 'static) -> PerfError {
    let mut config = short(client(act));
    config.end = EndAfter::Seconds(600.0);
    let error = run(&config).unwrap_err();
    assert!(!error.is_usage() && !error.to_string().contains('\n'), "{error}");
    error
}

/// Reads parameters, and starts the traffic of a test of one stream.
fn up_to_traffic(control: &mut TcpStream, listener: &TcpListener) -> TcpStream {
    control.write_all(&[State::ParamExchange.byte()]).unwrap();
    let mut length = [0; 4];
    control.read_exact(&mut length).unwrap();
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap();
    control.read_exact(&mut vec![0; length]).unwrap();
    control.write_all(&[State::CreateStreams.byte()]).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.read_exact(&mut [0; 37]).unwrap();
    control.write_all(&[State::TestStart.byte(), State::TestRunning.byte()]).unwrap();
    stream
}

#[test]
fn garbage_is_reported() {
    let error = failure(|mut control, _| control.write_all(b"HTTP/1.1 400 Bad Request").unwrap());
    assert!(matches!(error, PerfError::Order { .. }), "{error}");
    let error = failure(|mut control, _| {
        control.write_all(&[State::DisplayResults.byte()]).unwrap();
    });
    assert!(error.to_string().contains("DISPLAY_RESULTS before PARAM_EXCHANGE"), "{error}");
    let error = failure(|mut control, listener| {
        let _stream = up_to_traffic(&mut control, listener);
        control.write_all(&[State::CreateStreams.byte()]).unwrap();
        thread::sleep(Duration::from_secs(2));
    });
    assert!(error.to_string().contains("during the test"), "{error}");
}

#[test]
fn a_vanished_server_is_reported_at_once() {
    let error = failure(|control, _| drop(control));
    assert!(matches!(error, PerfError::Vanished { .. }), "{error}");
    let error = failure(|mut control, listener| {
        let _stream = up_to_traffic(&mut control, listener);
        thread::sleep(Duration::from_millis(200));
    });
    assert!(error.to_string().contains("during the test"), "{error}");
}

#[test]
fn a_broken_stream_is_reported_while_the_server_runs() {
    let error = failure(|mut control, listener| {
        drop(up_to_traffic(&mut control, listener));
        // The control connection stays open as long as the client's.
        let _ = control.read(&mut [0]);
    });
    assert!(matches!(error, PerfError::StreamBroke { id: 1, .. }), "{error}");
}

#[test]
fn error_codes_have_messages() {
    let error = failure(|mut control, _| {
        control.write_all(&[0xfe, 0, 0, 0, 37, 0, 0, 0, 0]).unwrap();
    });
    assert!(error.to_string().contains("shorter"), "{error}");
    let error = failure(|mut control, _| control.write_all(&[0xff]).unwrap());
    assert!(matches!(error, PerfError::Busy { .. }), "{error}");
    // A truncated error code is a disconnect.
    let error = failure(|mut control, _| control.write_all(&[0xfe, 0, 0]).unwrap());
    assert!(matches!(error, PerfError::Vanished { .. }), "{error}");
}

#[test]
fn invalid_results_are_reported() {
    for answer in [&b"\x00\x00\x00\x05hello"[..], b"\xff\xff\xff\xff", b"\x00\x00\x00\x09{}"] {
        let address = client(move |mut control, listener| {
            let mut stream = up_to_traffic(&mut control, listener);
            let reader =
                thread::spawn(move || while matches!(stream.read(&mut [0; 65536]), Ok(1..)) {});
            control.read_exact(&mut [0]).unwrap();
            control.write_all(&[State::ExchangeResults.byte()]).unwrap();
            control.write_all(answer).unwrap();
            let _ = control.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut control, &mut std::io::sink());
            reader.join().unwrap();
        });
        let mut config = short(address);
        config.end = EndAfter::Seconds(0.2);
        let error = run(&config).unwrap_err();
        assert!(
            matches!(error, PerfError::Frame { .. } | PerfError::Vanished { .. }),
            "{answer:?}: {error}"
        );
    }
}

#[test]
fn a_silent_server_can_be_interrupted() {
    let stop = StopFlag::new();
    let raise = stop.clone();
    let address = client(move |mut control, _| {
        raise.raise();
        let _ = control.read(&mut [0]);
    });
    let error = client::run(&short(address), &mut |_| (), &stop).unwrap_err();
    assert!(error.is_interruption(), "{error}");
}

#[test]
fn nobody_listens() {
    let address = SocketAddr::from(([127, 0, 0, 1], stall_retry::free_port()));
    let error = run(&short(address)).unwrap_err();
    assert!(error.to_string().contains("start a server there"), "{error}");
}

/// A result with what this end measured, and the error, of a test with this script's server.
fn incomplete(
    change: impl FnOnce(&mut client::ClientConfig),
    act: impl FnOnce(TcpStream, &TcpListener) + Send + 'static,
) -> client::Report {
    let mut config = short(client(act));
    config.keeps_incomplete = true;
    change(&mut config);
    client::run(&config, &mut |_| (), &StopFlag::new()).unwrap()
}

/// The server counted something and cannot say what: the results message does not pass.
#[test]
fn missing_results_leave_what_was_measured() {
    let report = incomplete(
        |config| config.end = EndAfter::Seconds(0.3),
        |mut control, listener| {
            let _stream = up_to_traffic(&mut control, listener);
            // Closes it after TEST_END.
            let _ = control.read(&mut [0]);
        },
    );
    let measurement = &report.measurement;
    assert!(measurement.streams[0].sent_bytes > 0 && measurement.streams[0].received_bytes > 0);
    assert!(measurement.streams[0].sender.len() >= 2 && report.theirs.is_none());
    assert!(report.incomplete.is_some_and(|why| why.contains("closed the control connection")));
    assert!(measurement.notes.iter().any(|note| note.contains("the server's results are missing")));
}

/// Bytes would end the test, and none arrive any more.
#[test]
fn a_test_that_bytes_end_is_given_up() {
    let report = incomplete(
        |config| {
            config.end = EndAfter::Bytes(ByteCount::from_bytes(1 << 30));
            config.receive_timeout = Duration::from_millis(500);
        },
        |mut control, listener| {
            let _stream = up_to_traffic(&mut control, listener);
            // Reads nothing more.
            let _ = control.read(&mut [0]);
        },
    );
    assert!(report.incomplete.is_some_and(|why| why.contains("acknowledged no data")));
    assert!(report.measurement.streams[0].sent_bytes > 0);
}
