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

const EMULAB: &str = "a course project on Emulab, TCP against UDT, figures 1 and 3; a link's delay counts each way on Emulab";
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
        "Amsterdam to Chicago over a lambda of its own, OC-12",
        "TCP and UDP tests on the NetherLight lambda; round trip about 100 ms",
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
        "Low Earth orbit: another satellite and another delay every 15 s; rate and dark 0.1 s are round figures",
        "M3AAWG training, Understanding Network Performance, 2025 (25 to 100 ms); Tanveer et al., Making Sense of Constellations, 2023 (15 s)",
        "rate=100mbit,rtt=25ms,blackhole=100ms@15s,\
         @15s.rtt=60ms,@30s.rtt=100ms,@45s.rtt=40ms,repeat=60s",
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
        "The same, dark from 5 s to 7 s",
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
