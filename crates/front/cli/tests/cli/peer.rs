//! iperf3's protocol by hand, from either end, for peers that mean no good.

use iperf3_proto::{Cookie, State, framing};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bounds what must come, generously.
const LONG: Duration = Duration::from_secs(20);

fn hear(from: &mut TcpStream) -> io::Result<u8> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(byte[0])
}

fn message(from: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// A server for one test of one stream that goes to it; it hands in `results`.
pub(crate) fn serve_once(listener: &TcpListener, results: &Value) -> io::Result<()> {
    let (mut control, _) = listener.accept()?;
    control.set_read_timeout(Some(LONG))?;
    control.read_exact(&mut [0; 37])?;
    control.write_all(&[State::ParamExchange.byte()])?;
    message(&mut control)?;
    control.write_all(&[State::CreateStreams.byte()])?;
    let (mut stream, _) = listener.accept()?;
    std::thread::spawn(move || io::copy(&mut stream, &mut io::sink()));
    control.write_all(&[State::TestStart.byte(), State::TestRunning.byte()])?;
    while hear(&mut control)? != State::TestEnd.byte() {}
    control.write_all(&[State::ExchangeResults.byte()])?;
    message(&mut control)?;
    control.write_all(&framing::encode(results).map_err(io::Error::other)?)?;
    control.write_all(&[State::DisplayResults.byte()])?;
    // Its client may hang up instead of taking leave.
    let _ = hear(&mut control);
    Ok(())
}

/// The results of a server that received nothing, with what is `added`.
pub(crate) fn results(added: &Value) -> Value {
    let mut results = json!({
        "cpu_util_total": 0.0, "cpu_util_user": 0.0, "cpu_util_system": 0.0,
        "sender_has_retransmits": 0,
        "streams": [{
            "id": 1, "bytes": 0, "retransmits": -1, "jitter": 0.0, "errors": 0, "packets": 0,
            "start_time": 0.0, "end_time": 1.0,
        }],
    });
    if let (Some(results), Some(added)) = (results.as_object_mut(), added.as_object()) {
        results.extend(added.clone());
    }
    results
}

/// A cookie of its own for every test.
fn cookie(number: u64) -> Cookie {
    let mut seed = [9; 36];
    seed[..8].copy_from_slice(&number.to_le_bytes());
    Cookie::from_random(seed)
}

/// Asks a server for a test, and hangs up. The server notices that later: with the same
/// cookie, the next connection would be taken for a stream of this test.
pub(crate) fn ask(server: SocketAddr, params: &[u8]) -> io::Result<()> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let mut control = TcpStream::connect(server)?;
    control.set_read_timeout(Some(LONG))?;
    control.write_all(cookie(ASKED.fetch_add(1, Ordering::Relaxed)).bytes())?;
    hear(&mut control)?;
    control.write_all(&u32::try_from(params.len()).unwrap().to_be_bytes())?;
    control.write_all(params)?;
    // Its verdict, or the end.
    let _ = hear(&mut control);
    Ok(())
}

/// A whole test in which nothing is sent.
pub(crate) fn empty_test(server: SocketAddr, number: u64) -> io::Result<()> {
    let mut control = TcpStream::connect(server)?;
    control.set_nodelay(true)?;
    control.set_read_timeout(Some(LONG))?;
    let cookie = cookie(number);
    control.write_all(cookie.bytes())?;
    let expect = |control: &mut TcpStream, state: State| match hear(control)? {
        byte if byte == state.byte() => Ok(()),
        byte => Err(io::Error::other(format!("{byte} instead of {state:?}"))),
    };
    expect(&mut control, State::ParamExchange)?;
    let params = json!({"tcp": true, "time": 1, "parallel": 1});
    control.write_all(&framing::encode(&params).map_err(io::Error::other)?)?;
    expect(&mut control, State::CreateStreams)?;
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(cookie.bytes())?;
    expect(&mut control, State::TestStart)?;
    expect(&mut control, State::TestRunning)?;
    control.write_all(&[State::TestEnd.byte()])?;
    expect(&mut control, State::ExchangeResults)?;
    let results = results(&json!({}));
    control.write_all(&framing::encode(&results).map_err(io::Error::other)?)?;
    message(&mut control)?;
    expect(&mut control, State::DisplayResults)?;
    control.write_all(&[State::IperfDone.byte()])
}
