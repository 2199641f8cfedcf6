//! What paths do beside rate and delay, seen from the hosts.

use crate::program::{LONGHAUL, carried, lab, lab_with, worked};
use serde_json::Value;

/// Median of a run of pings, in ms.
fn ping_median(output: &str) -> f64 {
    let mut times: Vec<f64> = output
        .lines()
        .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert!(times.len() >= 5, "{output}");
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A ping beside a bulk flow waits behind it in a deep drop-tail queue, and
/// hardly at all where flows have queues of their own.
pub(crate) fn fair_queues_keep_pings_short() {
    // The flow has at least four seconds to fill the queue, and outlasts the pings.
    let beside = format!(
        "{LONGHAUL} test server -t 120 --json >/dev/null & flow=$!; sleep 4; \
         ping -i 0.2 -c 20 server; kill -TERM $flow; wait"
    );
    let server = format!("{LONGHAUL} server --one-off");
    let rises = ["1s", "fq_codel"].map(|queue| {
        let link = format!("rate=20mbit,rtt=40ms,queue={queue}");
        let options = ["--tuned", "--server", &server];
        let ended = lab_with(&link, &options, &["sh", "-c", &beside]);
        assert!(worked(&ended, 0), "{}", ended.stderr);
        ping_median(&ended.stdout) - 40.0
    });
    assert!(rises[0] > 200.0 && rises[1] < 10.0, "drop-tail and fq_codel: {rises:?} ms");
}

/// A middlebox that strips the window scale option keeps the window at 64 KiB.
pub(crate) fn a_middlebox_strips_window_scaling() {
    let server = format!("{LONGHAUL} server --one-off");
    let options = ["--tuned", "--server", &server];
    let client = [LONGHAUL, "test", "server", "-t", "4", "--json"];
    let link = "rate=100mbit,rtt=100ms,window-scale=strip";
    let ended = lab_with(link, &options, &client);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    let result: Value = serde_json::from_str(&ended.stdout).unwrap();
    let rate = result["throughput_bps"].as_f64().unwrap();
    // 65 535 bytes in 100 ms are 5.24 Mbit/s.
    assert!((3.5e6..=5.3e6).contains(&rate), "{rate}: {}", ended.stderr);
    assert_eq!(result["limit"], "window-scaling", "{result}");
}

/// Corrupted packets come and fail their checksum; doubled ones come twice.
pub(crate) fn packets_are_corrupted_and_doubled() {
    let pings = ["ping", "-q", "-c", "300", "-i", "0.002", "server"];
    let (ended, report) =
        carried("rate=100mbit,rtt=2ms,corrupt=20%,duplicate=20%,seed=5", &[], &pings);
    let did = &report["achieved"];
    let count = |key: &str| did[key].as_u64().unwrap();
    assert!(count("corrupted") > 60 && count("duplicated") > 60, "{did}");
    assert!(ended.stdout.contains("duplicates"), "{}", ended.stdout);
    let summary = ended.stdout.lines().find(|line| line.contains("packet loss")).unwrap();
    let loss: f64 =
        summary.split("% packet loss").next().unwrap().rsplit(' ').next().unwrap().parse().unwrap();
    // Lost: corrupted on either way, 1 - 0.8^2 = 36 %, less where a copy was whole.
    assert!((10.0..50.0).contains(&loss), "{summary}");
    assert_eq!(did["drops"]["unasked"], 0, "{did}");
}

/// Marks instead of losses, where the hosts have agreed on ECN.
pub(crate) fn marks_take_the_place_of_drops() {
    let server = format!("{LONGHAUL} server --one-off");
    let options = ["--tuned", "--sysctl", "net.ipv4.tcp_ecn=1", "--server", &server];
    let client = [LONGHAUL, "test", "server", "-t", "4", "--json"];
    let link = "rate=20mbit,rtt=20ms,queue=codel,ecn=yes";
    let (_, report) = carried(link, &options, &client);
    let did = &report["achieved"];
    assert!(did["marked"].as_u64().unwrap() > 0 && did["drops"]["aqm"] == 0, "{did}");
}

/// Each way has its own settings, and they change when they are to.
pub(crate) fn ways_differ_and_change() {
    let link = "rtt=20ms,rate=100mbit,down.rate=10mbit,@1s.up.delay=60ms";
    let pings = ["ping", "-i", "0.25", "-c", "8", "server"];
    let (ended, report) = carried(link, &[], &pings);
    let times: Vec<f64> = ended
        .stdout
        .lines()
        .filter_map(|line| line.split("time=").nth(1)?.split(' ').next()?.parse().ok())
        .collect();
    assert!(times.len() == 8 && times[0] < 30.0 && times[7] > 65.0, "{times:?}");
    let asked = &report["asked"];
    let rates = [&asked["up"]["rate_bps"], &asked["down"]["rate_bps"]].map(Value::as_u64);
    assert_eq!(rates, [Some(100_000_000), Some(10_000_000)], "{asked}");
}

/// What a path lost is written down, and lost again.
pub(crate) fn losses_are_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let pings = ["ping", "-q", "-c", "200", "-i", "0.002", "server"];
    let lost_numbers = |file: &str| -> Vec<String> {
        let log = std::fs::read_to_string(file).unwrap();
        let lost = log.lines().filter(|line| line.contains("dropped-loss"));
        lost.map(|line| line.split(',').take(3).collect::<Vec<_>>().join(",")).collect()
    };
    let [first, second] = ["first.csv", "second.csv"].map(place);
    carried("rate=100mbit,rtt=2ms,loss=10%", &["--packet-log", &first], &pings);
    let link = format!("rate=100mbit,rtt=2ms,loss=replay:{first}");
    let (_, report) = carried(&link, &["--packet-log", &second], &pings);
    let before = lost_numbers(&first);
    assert!(before.len() > 10, "{before:?}");
    // Packets that the second run never sent, because others were lost, cannot be lost again.
    let again = lost_numbers(&second);
    assert!(again.len() * 10 >= before.len() * 8, "{} of {}", again.len(), before.len());
    assert!(again.iter().all(|packet| before.contains(packet)), "{again:?}");
    assert!(report["achieved"]["lost"].as_u64().unwrap() > 10, "{report}");
}

/// A path by its name.
pub(crate) fn paths_have_names() {
    let ended = lab("geo", &["ping", "-c", "1", "server"]);
    assert!(worked(&ended, 0), "{}", ended.stderr);
    assert!(ping_once(&ended.stdout) >= 600.0, "{}", ended.stdout);
    let ended = lab("goe", &["true"]);
    let said = ended.stderr.lines().last().unwrap_or_default();
    assert!(ended.code == Some(2) && said.contains("geo") && said.contains("lab paths"), "{said}");
}

fn ping_once(output: &str) -> f64 {
    let time = output.split("time=").nth(1).and_then(|rest| rest.split(' ').next());
    time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("{output}"))
}
