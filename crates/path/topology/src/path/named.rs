//! Built-in paths.

/// A built-in path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedPath {
    /// Its name.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Source of its figures.
    pub source: &'static str,
    /// The text of the path.
    pub spec: &'static str,
}

impl NamedPath {
    const fn new(
        name: &'static str,
        about: &'static str,
        source: &'static str,
        spec: &'static str,
    ) -> Self {
        NamedPath { name, about, source, spec }
    }

    /// The path of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static NamedPath> {
        PATHS.iter().find(|path| path.name == name)
    }
}

const EMULAB: &str = "a course project on Emulab, TCP against UDT, figures 1 and 3; assumed: its delays count each way";
const INTEROP: &str = "QUIC interop runner, testcases.py";
const BROWSING: &str = "WebPageTest, settings/connectivity.ini.sample";
const WEBSITE: &str = "WebPageTest, the connections of its website";

/// Every built-in path, long fat ones first.
pub const PATHS: &[NamedPath] = &[
    NamedPath::new(
        "transatlantic",
        "Frankfurt to Las Vegas between data centres, 2.16 MB of BDP",
        "Measuring Network Throughput, 2013",
        "rate=100mbit,rtt=173ms",
    ),
    NamedPath::new(
        "lambda",
        "Amsterdam to Chicago over a lambda of its own; assumed: OC-12, 100 ms",
        "TCP and UDP tests on the NetherLight lambda, which state neither rate nor RTT; assumed: OC-12 (622 Mbit/s), 100 ms",
        "rate=622mbit,rtt=100ms",
    ),
    NamedPath::new(
        "hongkong-germany",
        "Downloads from Germany to Hong Kong over 1 Gbit/s access links",
        "Long-distance HTTP downloads sped up by socket buffers",
        "rate=1gbit,rtt=200ms",
    ),
    NamedPath::new(
        "home-2.5g-to-seattle",
        "2.5 Gbit/s fibre at home in Eugene, Oregon, to Seattle",
        "M3AAWG training, Understanding Network Performance, 2025",
        "rate=2.5gbit,rtt=15ms,overhead=38",
    ),
    NamedPath::new(
        "home-2.5g-to-philadelphia",
        "2.5 Gbit/s fibre at home in Eugene, Oregon, to Philadelphia",
        "M3AAWG training, Understanding Network Performance, 2025; mean of its pings",
        "rate=2.5gbit,rtt=84.7ms,overhead=38",
    ),
    NamedPath::new(
        "home-2.5g-to-paris",
        "2.5 Gbit/s fibre at home in Eugene, Oregon, to Paris, 51.1 MB of BDP",
        "M3AAWG training, Understanding Network Performance, 2025",
        "rate=2.5gbit,rtt=163.6ms,overhead=38",
    ),
    NamedPath::new(
        "home-2.5g-to-darwin",
        "2.5 Gbit/s fibre at home in Eugene, Oregon, to Darwin, 71.3 MB of BDP",
        "M3AAWG training, Understanding Network Performance, 2025",
        "rate=2.5gbit,rtt=228.1ms,overhead=38",
    ),
    NamedPath::new(
        "geo",
        "Geostationary satellite, 250 Mbit/s down and 3 Mbit/s up",
        "M3AAWG training, Understanding Network Performance, 2025 (600 ms); picoquic's satellite test, after J. Border of Hughes (rates)",
        "up.rate=3mbit,down.rate=250mbit,rtt=600ms",
    ),
    NamedPath::new(
        "leo",
        "Low Earth orbit: a new satellite and delay every 15 s; the rate and the 0.1 s outage are \
         round figures",
        "M3AAWG training, Understanding Network Performance, 2025 (25 to 100 ms); Tanveer et al., Making Sense of Constellations, 2023 (15 s)",
        "rate=100mbit,rtt=25ms,blackhole=100ms@15s,\
         @15s.rtt=60ms,@30s.rtt=100ms,@45s.rtt=40ms,repeat=60s",
    ),
    NamedPath::new(
        "wifi-2.4ghz-crowded",
        "Wi-Fi at 2.4 GHz, 20 MHz, half of the airtime taken by others; RTT spikes",
        "Silicon Labs, SiWT917 Wi-Fi throughput (52.6 Mbit/s of TCP in a shielded chamber); Biswas et al., Large-scale Measurements of Wireless Network Behavior, 2015 (half of the channel in use); Pei et al., WiFi Can Be the Weakest Link, 2016 (half of the packets wait 20 ms and more); Huitema, Wi-Fi Jitter (1 to 2 ms, spikes of 50 to 200 ms, in order); assumed: the steps of the rate",
        "rate=26mbit,rtt=2ms,burst=64KiB,jitter=exponential:20ms,\
         @3s.rate=13mbit,@5s.rate=39mbit,@8s.rate=20mbit,repeat=10s",
    ),
    NamedPath::new(
        "wifi-5ghz",
        "Wi-Fi 6 at 5 GHz, 80 MHz, two streams, near the access point",
        "M3AAWG training, Understanding Network Performance, 2025 (800 Mbit/s of a link rate of 1201); Huitema, Wi-Fi Jitter (1 to 2 ms in good conditions); Hoiland-Jorgensen et al., Ending the Anomaly, 2017 (FQ-CoDel in Linux access points); assumed: rate steps of 0.8 and 0.6 as between 1024-QAM, 256-QAM and 64-QAM, jitter",
        "rate=800mbit,rtt=2ms,burst=64KiB,jitter=exponential:1ms,queue=fq_codel,\
         @4s.rate=640mbit,@7s.rate=480mbit,@9s.rate=640mbit,repeat=12s",
    ),
    NamedPath::new(
        "wifi-6ghz",
        "Wi-Fi 6E at 6 GHz, 160 MHz, two streams, in the same room",
        "McCann, Understanding Wi-Fi Speed and How 6 GHz Compares, 2021 (link rate 2400 Mbit/s); \
         Huitema, Wi-Fi Jitter (1 to 2 ms); assumed: the same two thirds of the link rate and the \
         same steps as at 5 GHz, half the jitter",
        "rate=1.6gbit,rtt=2ms,burst=64KiB,jitter=exponential:500us,queue=fq_codel,\
         @4s.rate=1.28gbit,@7s.rate=960mbit,@9s.rate=1.28gbit,repeat=12s",
    ),
    NamedPath::new(
        "lte-driving",
        "LTE in a moving car, 2 to 7 Mbit/s down and 1 to 3 Mbit/s up",
        "mahimahi, traces ATT-LTE-driving-2016 (means of 20 s; recorded as in Winstein et al., 2013); WebPageTest (RTT of LTE); assumed: a queue of 1 s",
        "down.rate=6.9mbit,up.rate=3.1mbit,rtt=70ms,queue=1s,\
         @20s.down.rate=2.3mbit,@20s.up.rate=1.1mbit,@40s.down.rate=3.9mbit,@40s.up.rate=1.6mbit,\
         @60s.down.rate=6mbit,@60s.up.rate=2.5mbit,@80s.down.rate=3.4mbit,@80s.up.rate=1.8mbit,\
         @100s.down.rate=4.9mbit,@100s.up.rate=1.4mbit,repeat=120s",
    ),
    NamedPath::new(
        "5g-mid-band",
        "5G at 2.5 to 3.7 GHz, the median downloads of three carriers in turn",
        "Ookla, Speedtest Intelligence, March 2024 (224.67, 287.14 and 145.36 Mbit/s); i46, Bandwidth Scaling in 5G Networks, 2026 (mean latency 28.93 ms in band n78); assumed: 25 Mbit/s up, 5 s for each rate, queues of 100 ms",
        "down.rate=225mbit,up.rate=25mbit,rtt=29ms,queue=100ms,\
         @5s.down.rate=287mbit,@10s.down.rate=145mbit,repeat=15s",
    ),
    NamedPath::new(
        "docsis",
        "Cable modem of DOCSIS 3.1 with PIE upstream: 15 to 30 ms under load",
        "White et al., Low Latency DOCSIS, 2019 (10 ms idle); RFC 8034 (PIE upstream); Flickinger et al., Improving Latency with AQM During COVID-19, 2021 (15 to 30 ms under load); assumed: 250 Mbit/s and 11 Mbit/s",
        "down.rate=250mbit,up.rate=11mbit,rtt=10ms,up.queue=pie",
    ),
    NamedPath::new(
        "docsis-no-aqm",
        "The same cable modem with an unmanaged queue upstream: 250 ms under load",
        "Flickinger et al., Improving Latency with AQM During COVID-19, 2021 (about 250 ms under load); the rest as docsis",
        "down.rate=250mbit,up.rate=11mbit,rtt=10ms,up.queue=250ms",
    ),
    NamedPath::new("emulab-100m-0ms-0", "Emulab, 100 Mbit/s", EMULAB, "rate=100mbit,delay=0ms"),
    NamedPath::new(
        "emulab-100m-0ms-1",
        "Emulab, 100 Mbit/s, 1 % loss",
        EMULAB,
        "rate=100mbit,delay=0ms,loss=1%",
    ),
    NamedPath::new(
        "emulab-100m-50ms-0",
        "Emulab, 100 Mbit/s, 50 ms each way",
        EMULAB,
        "rate=100mbit,delay=50ms",
    ),
    NamedPath::new(
        "emulab-100m-50ms-1",
        "Emulab, 100 Mbit/s, 50 ms each way, 1 % loss",
        EMULAB,
        "rate=100mbit,delay=50ms,loss=1%",
    ),
    NamedPath::new("emulab-500m-0ms-0", "Emulab, 500 Mbit/s", EMULAB, "rate=500mbit,delay=0ms"),
    NamedPath::new(
        "emulab-500m-0ms-1",
        "Emulab, 500 Mbit/s, 1 % loss",
        EMULAB,
        "rate=500mbit,delay=0ms,loss=1%",
    ),
    NamedPath::new(
        "emulab-500m-50ms-0",
        "Emulab, 500 Mbit/s, 50 ms each way",
        EMULAB,
        "rate=500mbit,delay=50ms",
    ),
    NamedPath::new(
        "emulab-500m-50ms-1",
        "Emulab, 500 Mbit/s, 50 ms each way, 1 % loss",
        EMULAB,
        "rate=500mbit,delay=50ms,loss=1%",
    ),
    NamedPath::new("emulab-1000m-0ms-0", "Emulab, 1 Gbit/s", EMULAB, "rate=1gbit,delay=0ms"),
    NamedPath::new(
        "emulab-1000m-0ms-1",
        "Emulab, 1 Gbit/s, 1 % loss",
        EMULAB,
        "rate=1gbit,delay=0ms,loss=1%",
    ),
    NamedPath::new(
        "emulab-1000m-50ms-0",
        "Emulab, 1 Gbit/s, 50 ms each way",
        EMULAB,
        "rate=1gbit,delay=50ms",
    ),
    NamedPath::new(
        "emulab-1000m-50ms-1",
        "Emulab, 1 Gbit/s, 50 ms each way, 1 % loss",
        EMULAB,
        "rate=1gbit,delay=50ms,loss=1%",
    ),
    NamedPath::new(
        "quic-interop",
        "The link most QUIC interop tests run over",
        INTEROP,
        "rate=10mbit,delay=15ms,queue=25p",
    ),
    NamedPath::new(
        "quic-interop-transfer-loss",
        "The same with 2 % loss",
        INTEROP,
        "rate=10mbit,delay=15ms,queue=25p,loss=2%",
    ),
    NamedPath::new(
        "quic-interop-handshake-loss",
        "The same with 30 % loss; the original never loses more than 3 in a row",
        INTEROP,
        "rate=10mbit,delay=15ms,queue=25p,loss=30%",
    ),
    NamedPath::new(
        "quic-interop-blackhole",
        "The same, with an outage from 5 s to 7 s",
        INTEROP,
        "rate=10mbit,delay=15ms,queue=25p,blackhole=2s@7s,@7s.blackhole=none",
    ),
    NamedPath::new(
        "cable",
        "Cable, 5/1 Mbit/s, 28 ms",
        BROWSING,
        "down.rate=5mbit,up.rate=1mbit,rtt=28ms",
    ),
    NamedPath::new(
        "dsl",
        "DSL, 1.5 Mbit/s and 384 kbit/s, 50 ms",
        BROWSING,
        "down.rate=1.5mbit,up.rate=384kbit,rtt=50ms",
    ),
    NamedPath::new(
        "fios",
        "Fibre of its time, 20/5 Mbit/s, 4 ms",
        BROWSING,
        "down.rate=20mbit,up.rate=5mbit,rtt=4ms",
    ),
    NamedPath::new(
        "dial-up",
        "A 56k modem, 49/30 kbit/s, 120 ms",
        BROWSING,
        "down.rate=49kbit,up.rate=30kbit,rtt=120ms",
    ),
    NamedPath::new(
        "3g",
        "Mobile 3G, 1.6 Mbit/s and 768 kbit/s, 300 ms",
        BROWSING,
        "down.rate=1.6mbit,up.rate=768kbit,rtt=300ms",
    ),
    NamedPath::new(
        "3g-fast",
        "Mobile 3G, 1.6 Mbit/s and 768 kbit/s, 150 ms",
        BROWSING,
        "down.rate=1.6mbit,up.rate=768kbit,rtt=150ms",
    ),
    NamedPath::new(
        "3g-slow",
        "Mobile 3G, 780/330 kbit/s, 200 ms",
        BROWSING,
        "down.rate=780kbit,up.rate=330kbit,rtt=200ms",
    ),
    NamedPath::new("4g", "Mobile 4G, 9 Mbit/s, 170 ms", WEBSITE, "rate=9mbit,rtt=170ms"),
    NamedPath::new("lte", "Mobile LTE, 12 Mbit/s, 70 ms", WEBSITE, "rate=12mbit,rtt=70ms"),
    NamedPath::new(
        "edge",
        "Mobile EDGE, 240/200 kbit/s, 840 ms",
        BROWSING,
        "down.rate=240kbit,up.rate=200kbit,rtt=840ms",
    ),
    NamedPath::new(
        "2g",
        "Mobile 2G, 35/32 kbit/s, 1300 ms",
        BROWSING,
        "down.rate=35kbit,up.rate=32kbit,rtt=1300ms",
    ),
];
