//! What is refused, in one line that names the remedy.

use super::*;

#[test]
fn refuses_in_one_line_that_names_the_remedy() {
    for (text, part) in [
        ("", "rate is missing"),
        ("rate=100mbit", "rtt is missing"),
        ("up.rate=100mbit,rtt=1ms", "down.rate is missing"),
        ("rate=100mbit,down.delay=1ms", "up.delay is missing"),
        ("rate=0,rtt=1ms", "rate of zero"),
        ("rate=100mbit,rtt=-1ms", "cannot be negative"),
        ("rate=100mbit,rtt=173", "rtt: '173' is not a time: give the unit"),
        ("rate=100mbit,rtt=1ms,rate=1gbit", "given twice"),
        (
            "rate=100mbit,rtt=1ms,speed=3",
            "unknown key 'speed'; the keys are rate, burst, rtt, delay",
        ),
        ("rate", "KEY=VALUE"),
        ("rate=100mbit,rtt=1ms,geo", "'geo' is not KEY=VALUE"),
        ("rate=100mbit,rtt=1ms,mtu=100", "1280"),
        ("rate=100mbit,rtt=1ms,seed=x", "whole number"),
    ] {
        refuse(text, part);
    }
}

#[test]
fn refuses_values_that_cannot_be() {
    for (text, part) in [
        ("loss=120%", "less than 100 %"),
        ("loss=ge:1%", "not P:R[:BAD[:GOOD]]; write ge:1%:30%"),
        ("loss=ge:1%:0", "the mean loss is 100 %"),
        ("loss=ge:1%:200%", "at most 100 %"),
        ("loss=gilbert:1%:2%", "not a loss model; write 1%"),
        ("loss=list:3+0", "'0' is not a packet number"),
        ("loss=list:9-3", "'9-3' is not a packet number"),
        ("loss=list:", "write list:3+7+10-20"),
        ("loss=data:", "write data:3+7+10-20"),
        ("loss=replay:", "the file name is missing"),
        ("loss=replay:x.csv", "cannot read 'x.csv'"),
        ("rate=trace:x", "given twice"),
        ("up.rate=trace:x", "up.rate: cannot read 'x': files cannot be read here"),
        ("burst=0", "write burst=64KiB"),
        ("up.rate=unlimited,burst=3KB", "burst: not valid with an unlimited rate; omit it"),
        ("jitter=gauss:1ms", "not a distribution (normal, uniform"),
        ("overtake=yes", "overtake: it needs up.jitter"),
        ("jitter=1ms,overtake=maybe", "not yes or no"),
        ("delay=1ms", "delay: it conflicts with rtt"),
        ("up.rtt=1ms", "write up.delay="),
        ("bursts=10@5s", "write 10p@5s"),
        ("bursts=0p@5s", "write 10p@5s"),
        ("bursts=10p@0s", "must be above zero"),
        ("blackhole=2s", "write 2s@7s"),
        ("blackhole=7s@7s", "must be shorter than its period"),
        ("reorder=1%", "write 1%:5ms"),
        ("duplicate=100%", "duplicate: '100%' is not a share of packets"),
        ("window-scale=15", "0 to 14"),
        ("up.mtu=60", "from 68 to 65535"),
        ("police=10mbit", "write 10mbit:64KiB"),
        ("udp.police=10mbit", "write 10mbit:64KiB"),
        ("tcp.police=10mbit:1KB", "tcp.police: a burst of 1 kB drops every packet"),
        ("up.udp.blackhole=2s@7s", "not yes or no"),
        ("udp.loss=1%", "unknown key 'udp.loss'"),
        ("udp.up.police=10mbit:64KiB", "unknown key 'udp.up.police'"),
        ("police=10mbit:1KB", "drops every packet of 1500 bytes"),
        ("overhead=1001", "overhead=38 for Ethernet"),
        ("up.overhead=38", "applies to both directions"),
        ("queue=100,", "cannot hold a packet"),
    ] {
        refuse(&format!("rate=100mbit,rtt=1ms,{text}"), part);
    }
}

#[test]
fn refuses_queues_that_cannot_be() {
    for (text, part) in [
        ("queue=fast", "write 1bdp"),
        ("queue=fq", "codel, fq_codel"),
        ("queue=0p", "from 1p"),
        ("queue=-1p", "from 1p"),
        ("queue=nanbdp", "outside"),
        ("queue=100", "queue: 100 bytes cannot hold a packet"),
        ("queue=codel,limit=100", "limit: 100 bytes cannot hold a packet"),
        ("rtt=0ms,queue=1bdp", "given twice"),
        ("queue=100p,limit=3p", "limit: the size is given in queue= already"),
        ("target=5ms", "target: not an option of a drop-tail queue; its options are limit, mark"),
        ("queue=codel,flows=3", "flows: not an option of a codel queue"),
        ("up.queue=codel,target=5ms", "its options are limit, mark (down)"),
        ("queue=codel,@5s.up.queue=1p,@5s.flows=2", "flows: not an option of a drop-tail queue"),
        ("@5s.up.queue=9", "(up from 5s)"),
        ("queue=pie,interval=3ms", "interval: not an option of a pie queue"),
        ("queue=dualpi2,ecn=yes", "ecn: not an option of a dualpi2 queue"),
        ("queue=dualpi2,coupling=0", "from 1 to 16"),
        ("queue=pie,step=1ms", "step: not an option of a pie queue"),
        ("queue=red,min=90p,max=60p", "min: 135 kB is not less than max"),
        ("queue=red,limit=100p,max=101p", "max: 152 kB is above the limit"),
        ("queue=codel,target=5ms,interval=5ms", "not longer than the target"),
        ("queue=codel,target=0ms", "must be above zero"),
        ("queue=fq_codel,flows=0", "from 1 to 65536"),
        ("queue=red,weight=32", "from 1 to 31"),
        ("queue=red,probability=101%", "at most 100 %"),
    ] {
        refuse(&format!("rate=100mbit,rtt=10ms,{text}"), part);
    }
    refuse("rate=100mbit,rtt=0ms,queue=1bdp", "cannot hold a packet");
}

#[test]
fn refuses_times_that_cannot_be() {
    for (text, part) in [
        ("@5s=3", "as in @5s.rate=2mbit"),
        ("@.rate=2mbit", "as in @5s.rate=2mbit"),
        ("@5.rate=2mbit", "as in @5s.rate=2mbit"),
        ("@5x.rate=2mbit", "'x' is not a unit of time"),
        ("@0s.rate=2mbit", "omit the prefix"),
        ("@5s.seed=3", "cannot change over time"),
        ("@5s.mtu=1400", "write up.mtu="),
        ("@5s.left.rate=2mbit", "'left' is not a prefix"),
        ("@5s.rate=2mbit,@5000ms.rate=3mbit", "given twice"),
        ("@5s.rtt=2ms,@5s.delay=3ms", "conflicts with rtt"),
        ("repeat=30s", "nothing changes over time"),
        ("@5s.rate=2mbit,repeat=5s", "not after the last change, at 5s"),
        ("@5s.queue=100", "(from 5s)"),
    ] {
        refuse(&format!("rate=100mbit,rtt=1ms,{text}"), part);
    }
}

#[test]
fn refuses_logs_and_traces_that_are_none() {
    let files = [
        ("empty", ""),
        ("trace", "1\nx\n"),
        ("slow", "1000000000000\n"),
        ("columns.csv", "link,way,number\n"),
        ("way.csv", "link,way,number,fate\nwan,left,1,dropped\n"),
        ("number.csv", "link,way,number,fate\nwan,up,1,delivered\nwan,up,x,dropped\n"),
        ("short.csv", "link,way,number,fate\nwan,up\n"),
    ];
    for (text, part) in [
        ("rate=trace:empty", "trace 'empty': the trace is empty"),
        ("rate=trace:trace", "line 2: expected a whole number"),
        ("rate=trace:slow", "below 1 bit/s"),
        ("rate=trace:none", "cannot read 'none'"),
        ("rate=1mbit,loss=replay:empty", "no column 'link'"),
        ("rate=1mbit,loss=replay:columns.csv", "no column 'fate'"),
        ("rate=1mbit,loss=replay:way.csv", "line 2: expected up or down"),
        ("rate=1mbit,loss=replay:number.csv", "line 3: expected a packet number"),
        ("rate=1mbit,loss=replay:short.csv", "line 2: fewer columns"),
    ] {
        let error = read(&format!("{text},rtt=1ms"), &files).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn names_that_are_none_get_near_ones() {
    refuse("gio", "no path named 'gio'; similar: geo");
    refuse("transatlantik,loss=1%", "similar: transatlantic");
    refuse("paris", "similar: home-2.5g-to-paris");
    refuse("qqq", "no path named 'qqq'; longhaul lab paths lists them");
}

#[test]
fn long_and_strange_text_stays_one_short_line() {
    let long = "x".repeat(1 << 20);
    for text in [
        long.clone(),
        format!("{long}=3"),
        format!("rate={long}"),
        format!("@{long}"),
        format!("@5{long}.rate=1mbit"),
        format!("{long}.rate=3mbit"),
        format!("rate=1mbit,rtt=1ms,queue={long}"),
        format!("rate=1mbit,rtt=1ms,loss=list:{long}"),
        format!("rate=trace:{long},rtt=1ms"),
        "rate=1\nmbit\u{1b}[31m".to_owned(),
    ] {
        let error = text.parse::<PathSpec>().unwrap_err().to_string();
        assert!(error.chars().count() < 450 && !error.contains(char::is_control), "{error}");
    }
}

fn refuse(text: &str, part: &str) {
    let error = text.parse::<PathSpec>().unwrap_err().to_string();
    assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
}
