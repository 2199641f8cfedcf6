//! Queues: sizes, disciplines, options and what stands in for them.

use super::*;
use link::{CoDel, DualPi2, Fifo, Limit, Pie, Queue, Red};

const MS: fn(u64) -> Duration = Duration::from_millis;

fn bytes(bytes: u64) -> Limit {
    Limit::Bytes(ByteCount::from_bytes(bytes))
}

fn queue(settings: &str) -> Queue {
    path(&format!("rate=100mbit,rtt=173ms,{settings}")).directions()[0].config().queue
}

fn words(settings: &str) -> String {
    path(&format!("rate=100mbit,rtt=173ms,{settings}")).queue_in_words()
}

#[test]
fn sizes_in_every_unit() {
    for (text, limit, in_words) in [
        ("1bdp", bytes(2_162_500), "1 BDP (2.16 MB)"),
        ("2bdp", bytes(4_325_000), "2 BDP (4.33 MB)"),
        ("0.5bdp", bytes(1_081_250), "0.5 BDP (1.08 MB)"),
        ("1000p", Limit::Packets(1000), "1000 packets"),
        ("2MiB", bytes(2 << 20), "2 MiB"),
        ("250ms", bytes(3_125_000), "250 ms (3.12 MB)"),
        ("64000bytes", bytes(64_000), "64 kB"),
    ] {
        assert_eq!(queue(&format!("queue={text}")), Queue::drop_tail(limit), "{text}");
        assert_eq!(words(&format!("queue={text}")), in_words);
        assert_eq!(queue(&format!("queue=drop-tail,limit={text}")), Queue::drop_tail(limit));
        let head = Queue::DropHead(Fifo { limit, mark: None });
        assert_eq!(queue(&format!("limit={text},queue=drop-head")), head);
    }
}

#[test]
fn a_default_queue_takes_a_train_even_without_delay() {
    let spec = path("rate=1gbit,rtt=0ms");
    assert_eq!(spec.directions()[0].config().queue, Queue::drop_tail(bytes(64 * 1500)));
    assert_eq!(path("rate=1gbit,rtt=0ms,mtu=9000,overhead=38").queue_bytes().bytes(), 64 * 9038);
}

#[test]
fn marks_by_a_step() {
    let marks = |text: &str| match queue(text) {
        Queue::DropTail(fifo) | Queue::DropHead(fifo) => fifo.mark,
        other => panic!("{other:?}"),
    };
    assert_eq!(marks("mark=20p"), Some(Limit::Packets(20)));
    assert_eq!(marks("mark=30KiB,queue=1000p"), Some(bytes(30 * 1024)));
    assert_eq!(marks("mark=1ms,queue=drop-head"), Some(bytes(12_500)));
    assert_eq!(words("queue=100p,mark=20p"), "100 packets, ECN marks above 20 packets");
}

#[test]
fn controlled_delay() {
    let plain =
        CoDel { target: MS(5), interval: MS(100), limit: Limit::Packets(10_240), ecn: false };
    assert_eq!(queue("queue=codel"), Queue::CoDel(plain));
    let other = CoDel { target: MS(7), interval: MS(80), limit: bytes(1 << 20), ecn: true };
    assert_eq!(
        queue("queue=codel,target=7ms,interval=80ms,limit=1MiB,ecn=yes"),
        Queue::CoDel(other)
    );
    let Queue::FqCoDel(fq) = queue("queue=fq_codel") else { panic!() };
    assert_eq!((fq.codel, fq.flows, fq.quantum), (CoDel { ecn: true, ..plain }, 1024, 1514));
    let Queue::FqCoDel(fq) = queue("queue=fq_codel,ecn=no,flows=16,quantum=300") else { panic!() };
    assert_eq!((fq.codel, fq.flows, fq.quantum), (plain, 16, 300));
    assert_eq!(
        words("queue=fq_codel"),
        "fq_codel, target 5 ms, interval 100 ms, limit 10240 packets, 1024 flows, quantum 1514, ECN on"
    );
}

#[test]
fn a_limit_of_packets_is_no_limit_to_a_long_fat_path() {
    // 4 BDPs of 10 Gbit/s x 100 ms are 500 MB, 10 240 packets are 15 MB.
    let spec = path("rate=10gbit,rtt=100ms,queue=codel");
    assert_eq!(spec.directions()[0].config().queue.limit(), bytes(500_000_000));
}

#[test]
fn a_slow_link_has_a_target_of_more_than_a_packet() {
    let target = |text: &str| match path(text).directions()[0].config().queue {
        Queue::CoDel(codel) => (codel.target, codel.interval),
        other => panic!("{other:?}"),
    };
    // 1500 bytes take 12 ms at 1 Mbit/s, 3 ms at 4 Mbit/s.
    assert_eq!(target("rate=1mbit,rtt=1ms,queue=codel"), (MS(18), MS(113)));
    assert_eq!(target("rate=4mbit,rtt=1ms,queue=codel"), (MS(5), MS(100)));
    assert_eq!(target("rate=1mbit,rtt=1ms,queue=codel,target=12ms").0, MS(12));
    let error = "rate=1mbit,rtt=1ms,queue=codel,target=11ms".parse::<PathSpec>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "target: 11 ms is less than the 12 ms that a packet takes at 1 Mbit/s; omit it, or write a longer time"
    );
    let error = "rate=10mbit,rtt=1ms,queue=codel,target=5ms,@5s.up.rate=1mbit";
    let error = error.parse::<PathSpec>().unwrap_err().to_string();
    assert!(error.ends_with("(up from 5s)"), "{error}");
}

#[test]
fn early_detection() {
    let size = ByteCount::from_bytes;
    let plain = Red {
        min: size(360_416),
        max: size(1_081_250),
        probability: "10%".parse().unwrap(),
        weight: 9,
        limit: bytes(2_162_500),
        ecn: false,
    };
    assert_eq!(queue("queue=red"), Queue::Red(plain));
    let other = Red {
        min: size(30_000),
        max: size(90_000),
        probability: "5%".parse().unwrap(),
        weight: 7,
        limit: Limit::Packets(200),
        ecn: true,
    };
    let text = "queue=red,min=20p,max=60p,probability=5%,weight=7,limit=200p,ecn=yes";
    assert_eq!(queue(text), Queue::Red(other));
    assert_eq!(
        words(text),
        "red, min 30 kB, max 90 kB, probability 5 %, weight 7, limit 200 packets, ECN on"
    );
    let pie = Pie {
        target: MS(15),
        update: MS(15),
        burst: MS(150),
        limit: Limit::Packets(10_240),
        ecn: false,
    };
    assert_eq!(queue("queue=pie"), Queue::Pie(pie));
    let pie = Pie { target: MS(20), update: MS(10), burst: MS(0), ecn: true, ..pie };
    let text = "queue=pie,target=20ms,update=10ms,max-burst=0ms,ecn=on";
    assert_eq!(queue(text), Queue::Pie(pie));
    assert_eq!(
        words(text),
        "pie, target 20 ms, update 10 ms, max burst 0 ms, limit 10240 packets, ECN on"
    );
}

#[test]
fn coupled_queues() {
    let plain = DualPi2 {
        target: MS(15),
        update: MS(16),
        step: MS(1),
        coupling: 2,
        classic_share: "10%".parse().unwrap(),
        limit: Limit::Packets(10_240),
    };
    assert_eq!(queue("queue=dualpi2"), Queue::DualPi2(plain));
    let other = DualPi2 {
        target: MS(20),
        update: MS(20),
        step: Duration::from_micros(500),
        coupling: 3,
        classic_share: "25%".parse().unwrap(),
        limit: Limit::Packets(500),
    };
    let text = "queue=dualpi2,target=20ms,update=20ms,step=500us,coupling=3,classic-share=25%,\
                limit=500p";
    assert_eq!(queue(text), Queue::DualPi2(other));
    assert_eq!(
        words(text),
        "dualpi2, target 20 ms, update 20 ms, step 500 µs, coupling 3, classic share 25 %, \
         limit 500 packets"
    );
}

#[test]
fn a_queue_given_anew_begins_without_options() {
    let spec = path("rate=100mbit,rtt=173ms,queue=codel,target=9ms,@5s.queue=100p");
    assert_eq!(
        spec.queue_in_words(),
        "codel, target 9 ms, interval 104 ms, limit 10240 packets, ECN off"
    );
    let late: Vec<_> = spec.states().map(|(_, [up, _])| up.queue_in_words()).collect();
    assert_eq!(late[1], "100 packets");
    assert_eq!(change(&spec, "queue=50p").to_spec(), "rate=100mbit,rtt=173ms,queue=50p");
    // An option alone goes with the queue that is there.
    assert!(change(&spec, "up.target=8ms").queue_in_words().contains("target 8 ms"));
    let later = path("rate=100mbit,rtt=173ms,queue=codel,@5s.target=20ms,@9s.interval=200ms");
    let [up, _] = later.schedules(0);
    assert_eq!(up.changes.len(), 2);
}

#[test]
fn nothing_waits_where_the_rate_is_unlimited() {
    let spec = path("rate=unlimited,rtt=100ms,queue=10p");
    assert_eq!((spec.queue_bytes(), spec.bdp()), (ByteCount::ZERO, ByteCount::ZERO));
    let queued = link::Occupancy { bytes: ByteCount::from_bytes(1 << 40), packets: 1 << 30 };
    let packet = ByteCount::from_bytes(9000);
    assert!(spec.directions()[0].config().queue.limit().admits(queued, packet));
}
