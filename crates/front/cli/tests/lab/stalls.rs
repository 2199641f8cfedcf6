//! Tests whose data stops arriving, or never arrives: the loss, the cause, and the exit code.

use crate::program::{LONGHAUL, carried};
use serde_json::Value;

/// The exit codes and JSON results of tests, one after the other, of the lab's server.
fn tested(link: &str, tests: &[&str]) -> Vec<(i32, Value)> {
    let tests = tests.iter().map(|options| {
        format!("{LONGHAUL} test server --yes --json {options}; echo \" exit $? ,\"")
    });
    let script = tests.collect::<Vec<_>>().join("\n");
    let server = format!("{LONGHAUL} server");
    let (ended, _) = carried(link, &["--server", &server], &["sh", "-c", &script]);
    let results = ended.stdout.split(" ,\n").filter(|text| !text.trim().is_empty());
    let results = results.map(|text| {
        let (json, code) = text.rsplit_once(" exit ").unwrap();
        let json = serde_json::from_str(json);
        (code.trim().parse().unwrap(), json.unwrap_or_else(|e| panic!("{e}: {}", ended.stderr)))
    });
    results.collect()
}

fn sentence(result: &Value) -> &str {
    result["sentence"].as_str().unwrap()
}

/// Datagrams after the last arrival are lost as well.
pub(crate) fn udp_that_stops_arriving_is_lost() {
    let link = "rate=20mbit,rtt=10ms,@2s.udp.blackhole=yes";
    let [(code, result)] = &tested(link, &["-u -b 1mbit -t 4"])[..] else { panic!() };
    let datagrams = &result["streams"][0]["datagrams"];
    let count = |key: &str| datagrams[key].as_u64().unwrap();
    assert_eq!(count("lost"), count("sent") - count("received"), "{datagrams}");
    assert!(count("lost") > count("sent") / 5 && count("received") > 0, "{datagrams}");
    assert_eq!(result["limit"], "outage", "{}", sentence(result));
    assert!(sentence(result).contains("nothing arrived after"), "{}", sentence(result));
    assert_eq!(*code, 0, "some arrived");
}

/// TCP that stops has its times, however slow it was, and with several streams.
pub(crate) fn a_test_that_stops_names_the_outage() {
    let link = "rate=50mbit,rtt=10ms,up.blackhole=2500ms@4500ms";
    let [(code, result)] = &tested(link, &["-P 2 -b 5mbit -t 3.5"])[..] else { panic!() };
    assert_eq!((*code, &result["limit"]), (0, &Value::from("outage")), "{}", sentence(result));
    assert!(sentence(result).contains("(the end)"), "{}", sentence(result));
}

/// Packets of more than 1400 bytes vanish: what is sent in them never arrives, and what fits does.
pub(crate) fn packets_that_are_too_long_are_named() {
    let tests = [
        "-t 2",
        "-u -l 20k -b 2mbit -t 1",
        "-u -l auto -b 2mbit -t 1",
        "--udt --no-fallback -t 1",
        "--udt --native --no-fallback -t 1",
    ];
    let results = tested("rate=50mbit,rtt=10ms,up.mtu=1400", &tests);
    let [(tcp_code, tcp), (udp_code, udp), (auto_code, auto), udt @ ..] = &results[..] else {
        panic!()
    };
    assert_eq!((*tcp_code, *udp_code, *auto_code), (1, 1, 0));
    assert_eq!(tcp["limit"], "pmtu-black-hole", "{}", sentence(tcp));
    assert!(sentence(tcp).contains("no full-size segment arrives"), "{}", sentence(tcp));
    assert!(
        sentence(tcp).contains("packets of up to 1400 B do") && sentence(tcp).contains("-M 1360")
    );
    assert!(sentence(udp).contains("(100 % lost)"), "{}", sentence(udp));
    assert!(
        sentence(udp).contains("datagrams of 20480 B are fragmented into"),
        "{}",
        sentence(udp)
    );
    assert!(sentence(udp).contains("-l 1372"), "{}", sentence(udp));
    let notes = udp["notes"].to_string();
    assert!(notes.contains("fragmented into 14"), "said before the test: {notes}");
    assert_eq!(auto["streams"][0]["datagrams"]["length_bytes"], 1372);
    assert!(auto["received_bytes"].as_u64().unwrap() > 0);
    for (code, result) in udt {
        let received = result["received_bytes"].as_u64().unwrap();
        assert!(*code == 0 && received > 1_000_000, "{received}: {}", sentence(result));
    }
}
