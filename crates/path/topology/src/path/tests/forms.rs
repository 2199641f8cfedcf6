//! Each form of a value, each prefix.

use super::*;
use link::{
    Blackhole, Bursts, Distribution, GilbertElliott, Loss, Rate, Reorder, TokenBucket, WindowScale,
};
use units::{LossRatio, Nanos, Probability};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn up(settings: &str) -> LinkConfig {
    path(&format!("rate=100mbit,rtt=100ms,{settings}")).directions()[0].config().clone()
}

fn down(settings: &str) -> LinkConfig {
    path(&format!("rate=100mbit,rtt=100ms,{settings}")).directions()[1].config().clone()
}

fn ratio(text: &str) -> LossRatio {
    text.parse().unwrap()
}

#[test]
fn rates() {
    let bucket =
        TokenBucket { rate: BitRate::from_bps(100_000_000), burst: ByteCount::from_bytes(65_536) };
    assert_eq!(up("").rate, Rate::Constant(BitRate::from_bps(100_000_000)));
    assert_eq!(up("burst=64KiB").rate, Rate::TokenBucket(bucket));
    assert_eq!(up("up.burst=none,burst=64KiB").rate, up("").rate);
    let spec = read("rate=trace:lte.up,down.rate=unlimited,rtt=100ms", &[("lte.up", "1\n2\n")]);
    let spec = spec.unwrap();
    assert_eq!(spec.rate(), Some(BitRate::from_bps(12_032_000)));
    assert_eq!(spec.down_rate(), None);
    assert_eq!(spec.queue_bytes(), spec.directions()[0].bdp());
    assert!(
        spec.to_string()
            .starts_with("12 Mbit/s on average (trace lte.up) up and unlimited rate down"),
        "{spec}"
    );
}

#[test]
fn delays() {
    let spec = path("rate=1gbit,rtt=100ms,up.delay=10ms");
    assert_eq!(spec.directions().map(|direction| direction.delay().millis_f64()), [10.0, 50.0]);
    let spec = path("rate=1gbit,delay=7ms,down.delay=8ms");
    assert_eq!(spec.rtt().millis_f64(), 15.0);
}

#[test]
fn jitter() {
    let jitter = |text: &str| up(text).jitter.map(|j| (j.distribution, j.scale, j.overtake));
    assert_eq!(jitter("jitter=5ms"), Some((Distribution::Normal, MS(5), false)));
    assert_eq!(jitter("jitter=normal:5ms"), jitter("jitter=5ms"));
    assert_eq!(
        jitter("jitter=uniform:5ms,overtake=yes"),
        Some((Distribution::Uniform, MS(5), true))
    );
    assert_eq!(jitter("jitter=exponential:1ms").unwrap().0, Distribution::Exponential);
    assert_eq!(jitter("jitter=pareto:1ms,overtake=no").unwrap().0, Distribution::Pareto);
    assert_eq!((jitter("jitter=none"), jitter("jitter=0ms")), (None, None));
}

#[test]
fn losses() {
    assert_eq!(up("loss=1%").loss, Loss::Bernoulli(ratio("1%")));
    assert_eq!((up("loss=0").loss, up("loss=none").loss), (Loss::None, Loss::None));
    let probability = |text: &str| text.parse::<Probability>().unwrap();
    let model = GilbertElliott {
        p: probability("1%"),
        r: probability("30%"),
        bad: Probability::ALWAYS,
        good: Probability::NEVER,
    };
    assert_eq!(up("loss=ge:1%:30%").loss, Loss::GilbertElliott(model));
    let model = GilbertElliott { bad: probability("50%"), good: probability("0.1%"), ..model };
    assert_eq!(up("loss=ge:1%:30%:50%:0.1%").loss, Loss::GilbertElliott(model));
    let Loss::List(list) = up("loss=list:3+7+10-20").loss else { panic!("a list") };
    assert_eq!(list.len(), 13);
    assert!([3, 7, 10, 20].iter().all(|n| list.contains(*n)) && !list.contains(21));
    let Loss::DataList(list) = up("loss=data:3+7+10-20").loss else { panic!("a list") };
    assert_eq!(list.len(), 13);
}

#[test]
fn loss_in_the_long_run() {
    for (text, mean) in [
        ("loss=1%", "1%"),
        ("loss=ge:1%:30%", "3.226%"),
        ("loss=ge:1%:30%:50%:0.1%", "1.71%"),
        ("loss=ge:0.00001%:100%", "0.00001%"),
        ("loss=ge:99.999999%:0.000001%", "99.999999%"),
        ("loss=ge:0:30%:100%:2%", "2%"),
        ("loss=list:3", "0"),
        ("loss=data:3", "0"),
        ("seed=1", "0"),
    ] {
        let spec = path(&format!("rate=100mbit,rtt=100ms,{text}"));
        assert_eq!(spec.directions().map(PathDirection::mean_loss), [ratio(mean); 2], "{text}");
    }
}

const LOG: &str = "\
time,link,way,number,size,fate\n\
0.1,wan,up,1,1500,delivered\n\
0.2,wan,up,2,1500,dropped: lost\n\
0.3,wan,down,1,52,dropped-queue-full\n\
0.4,wan,up,3,1500,\"dropped, dark\"\n\
\n\
0.5,\"wan\",down,9,52,delivered\n";

fn lost(spec: &PathSpec) -> [Vec<u64>; 2] {
    spec.directions().map(|direction| match &direction.config().loss {
        Loss::List(list) => (1..30).filter(|number| list.contains(*number)).collect(),
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_log_is_replayed_by_direction() {
    let spec = read("rate=1mbit,rtt=1ms,loss=replay:run/log.csv", &[("run/log.csv", LOG)]).unwrap();
    assert_eq!(lost(&spec), [vec![2, 3], vec![1]]);
    assert_eq!(spec.directions()[0].effects(), ["loss 2 packets (log run/log.csv)"]);
    assert!(spec.to_spec().ends_with("loss=replay:run/log.csv"));
    // The same log for one way only.
    let text = "rate=1mbit,rtt=1ms,loss=1%,down.loss=replay:log.csv:wan";
    let spec = read(text, &[("log.csv", LOG)]).unwrap();
    assert_eq!(spec.directions()[0].mean_loss(), ratio("1%"));
    assert!(matches!(&spec.directions()[1].config().loss, Loss::List(list) if list.len() == 1));
}

#[test]
fn a_log_of_several_links_needs_one_named() {
    let log = format!("{LOG}0.6,lan,up,5,1500,dropped: lost\n");
    let files = [("log.csv", log.as_str())];
    let spec = read("rate=1mbit,rtt=1ms,loss=replay:log.csv:lan", &files).unwrap();
    assert_eq!(lost(&spec), [vec![5], vec![]]);
    for (text, part) in [
        ("replay:log.csv", "several links; add :LINK, one of wan, lan"),
        ("replay:log.csv:man", "no link 'man'; the links are wan, lan"),
    ] {
        let error = read(&format!("rate=1mbit,rtt=1ms,loss={text}"), &files).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn other_effects() {
    let all = up("bursts=10p@5s,blackhole=2s@7s,reorder=1%:5ms,duplicate=0.1%,corrupt=0.01%,\
                  window-scale=3,up.mtu=1400,police=10mbit:64KiB,mtu=9000");
    let second = Duration::from_secs;
    assert_eq!(all.bursts, Some(Bursts { packets: 10, every: second(5) }));
    assert_eq!(all.blackhole, Some(Blackhole { length: second(2), every: second(7) }));
    assert_eq!(all.reorder, Some(Reorder { share: ratio("1%"), by: MS(5) }));
    assert_eq!((all.duplicate, all.corrupt), (ratio("0.1%"), ratio("0.01%")));
    assert_eq!(all.window_scale, Some(WindowScale::Set(3)));
    assert_eq!(up("window-scale=strip").window_scale, Some(WindowScale::Strip));
    assert_eq!(all.mtu, Some(1400));
    let bucket =
        TokenBucket { rate: BitRate::from_bps(10_000_000), burst: ByteCount::from_bytes(65_536) };
    assert_eq!(all.policer, Some(bucket));
    let none = up("bursts=none,blackhole=none,reorder=none,duplicate=0,corrupt=0,\
                   window-scale=none,up.mtu=none,police=none");
    assert_eq!(none, up(""));
}

#[test]
fn effects_in_words() {
    let spec = path(
        "rate=1mbit,rtt=1ms,up.loss=1%,jitter=uniform:5ms,overtake=yes,bursts=10p@5s,\
         blackhole=2s@20s,reorder=1%:5ms,duplicate=0.1%,corrupt=0.01%,window-scale=strip,\
         down.mtu=1400,police=10mbit:64KiB",
    );
    let both = [
        "jitter uniform 5 ms with reordering",
        "bursts of 10 lost packets every 5000 ms",
        "blackhole for the last 2000 ms of every 20 s",
        "1 % delayed by 5 ms (reordering)",
        "0.1 % duplicated",
        "0.01 % corrupted",
        "window scale stripped",
    ];
    let policed = "policed at 10 Mbit/s with a burst of 64 KiB";
    assert_eq!(spec.directions()[0].effects(), [&["loss 1 %"], &both[..], &[policed]].concat());
    let long = "packets over 1400 bytes dropped";
    assert_eq!(spec.directions()[1].effects(), [&both[..], &[long, policed]].concat());
}

#[test]
fn the_devices_mtu_is_not_a_directions() {
    let spec = path("rate=1gbit,rtt=10ms,mtu=9000,down.mtu=1400");
    assert_eq!(spec.mtu(), 9000);
    assert_eq!(spec.directions().map(|direction| direction.config().mtu), [None, Some(1400)]);
    assert_eq!(spec.queue_bytes().bytes(), 1_250_000);
    // Both ways the same is still no MTU of the devices.
    let spec = path("rate=1gbit,rtt=10ms,up.mtu=1400,down.mtu=1400");
    assert_eq!((spec.mtu(), path(&spec.to_spec())), (1500, spec));
}

#[test]
fn a_direction_wins_whatever_the_order() {
    assert_eq!(up("up.loss=1%,loss=2%"), up("loss=2%,up.loss=1%"));
    assert_eq!(up("up.loss=1%,loss=2%").loss, Loss::Bernoulli(ratio("1%")));
    assert_eq!(down("up.loss=1%,loss=2%").loss, Loss::Bernoulli(ratio("2%")));
    assert_eq!(down("up.loss=1%").loss, Loss::None);
}

#[test]
fn settings_change_over_time() {
    let spec = path(
        "rate=10mbit,rtt=20ms,@5s.rate=2mbit,@10s.up.loss=1%,@1.5s.down.delay=30ms,repeat=30s",
    );
    assert!(spec.has_schedule());
    let [up, down] = spec.schedules(3);
    let at = |schedule: &Schedule, ms: u64| schedule.at(Nanos(ms * 1_000_000)).0.clone();
    assert_eq!(at(&up, 0).rate, Rate::Constant(BitRate::from_bps(10_000_000)));
    assert_eq!(at(&up, 5_000).rate, Rate::Constant(BitRate::from_bps(2_000_000)));
    assert_eq!(at(&up, 9_999).loss, Loss::None);
    assert_eq!(at(&up, 10_000).loss, Loss::Bernoulli(ratio("1%")));
    assert_eq!(at(&up, 30_000), at(&up, 0));
    assert_eq!(at(&down, 10_000).loss, Loss::None);
    assert_eq!((at(&down, 1_499).delay, at(&down, 1_500).delay), (MS(10), MS(30)));
    // The seed is the same at all times; only what changes a way is a change of it.
    assert!(up.changes.iter().all(|(_, config)| config.seed == 3));
    assert_eq!(down.changes.len(), 2);
    let [up, down] = path("rate=10mbit,rtt=20ms,@5s.up.loss=1%,repeat=6s").schedules(0);
    assert_eq!((up.repeat, down.repeat), (Some(Duration::from_secs(6)), None));
    assert!(down.changes.is_empty());
}

#[test]
fn later_settings_take_the_place_of_earlier_ones() {
    let geo = path("geo");
    assert_eq!(path("geo,loss=1%"), change(&geo, "loss=1%"));
    assert_eq!(path("geo,rate=5mbit").down_rate(), Some(BitRate::from_bps(5_000_000)));
    assert_eq!(path("geo,up.rate=5mbit").down_rate(), geo.down_rate());
    assert_eq!(path("geo,up.delay=1ms").rtt().millis_f64(), 301.0);
    // At all times, where no time is given; what is left has nothing to repeat.
    let calm = path("leo,rtt=30ms");
    assert!(!calm.has_schedule() && !calm.to_spec().contains("repeat"), "{}", calm.to_spec());
    let later = change(&path("leo"), "@15s.rtt=30ms");
    assert!(later.has_schedule() && later.rtt() == path("leo").rtt());
    // A way of its own keeps the other one's changes.
    let spec = change(&path("rate=1mbit,rtt=1ms,@5s.loss=1%"), "up.loss=2%");
    assert_eq!(spec.to_spec(), "rate=1mbit,rtt=1ms,up.loss=2%,@5s.down.loss=1%");
    let seeded = change(&path("rate=1mbit,rtt=1ms,seed=4,mtu=9000"), "seed=5,overhead=38");
    assert_eq!((seeded.seed(), seeded.mtu(), seeded.overhead()), (Some(5), 9000, 38));
}
