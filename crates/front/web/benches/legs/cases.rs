//! What is drawn: a first link, and a second one.

/// What limits, as the verdict calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Truth {
    /// A slow first link, whose rate and delay vary.
    Near,
    /// A slow second link.
    Line,
    /// Losses or windows over a long RTT.
    Far,
}

impl Truth {
    pub(crate) const ALL: [Truth; 3] = [Truth::Near, Truth::Line, Truth::Far];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Truth::Near => "near",
            Truth::Line => "line",
            Truth::Far => "far",
        }
    }
}

/// Three hosts in a row.
#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) number: usize,
    pub(crate) truth: Truth,
    /// Between the visitor and the near server.
    near: String,
    /// Between the two servers.
    far: String,
    /// The largest receive buffer, bytes.
    window: Option<u64>,
}

impl Case {
    pub(crate) fn words(&self) -> String {
        let window = self.window.map_or(String::new(), |bytes| format!(" window={bytes}"));
        format!("{} | {}{window}", self.near, self.far)
    }

    /// The plan of the lab.
    pub(crate) fn plan(&self) -> String {
        let window = self.window.map_or(String::new(), |bytes| {
            let buffer = format!("\"4096 {} {bytes}\"", bytes.min(131_072));
            format!("[sysctl]\n\"net.ipv4.tcp_rmem\" = {buffer}\n\"net.ipv4.tcp_wmem\" = \"4096 131072 8388608\"\n")
        });
        format!(
            "name = \"legs\"\n{window}[host.visitor]\n[router.near]\n[host.far]\n\
             [[link]]\nbetween = [\"visitor\", \"near\"]\npath = \"{}\"\n\
             [[link]]\nbetween = [\"near\", \"far\"]\npath = \"{}\"\n",
            self.near, self.far
        )
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Between two values, evenly in their logarithm.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        let share = (self.next() >> 11) as f64 / (1u64 << 53) as f64;
        low * (high / low).powf(share)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        let at = self.next() % all.len().max(1) as u64;
        all.get(at as usize).copied().unwrap_or_default()
    }
}

/// The case of a number: the kinds take turns.
pub(crate) fn case(seed: u64, number: usize) -> Case {
    let mut random = Random(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
    let truth = Truth::ALL[number % Truth::ALL.len()];
    let mut case = Case { number, truth, near: String::new(), far: String::new(), window: None };
    let draw = random.next() >> 1;
    match truth {
        Truth::Near => {
            // The rate steps between modulations, up to 30 % around its middle.
            let rate = random.between(8.0, 80.0);
            let jitter = random.between(0.3, 3.0);
            let steps = random.one_of(&["", "varies", "varies"]);
            let steps = match steps {
                "" => String::new(),
                _ => format!(
                    ",@0.7s.rate={:.0}kbit,@1.6s.rate={:.0}kbit,@2.2s.rate={:.0}kbit,repeat=3.1s",
                    rate * 800.0,
                    rate * 1250.0,
                    rate * 1000.0
                ),
            };
            case.near = format!(
                "rate={:.0}kbit,rtt=3ms,jitter=exponential:{jitter:.1}ms,queue={},seed={draw}{steps}",
                rate * 1000.0,
                random.one_of(&["200KiB", "400KiB", "fq_codel"])
            );
            let beyond = rate * random.between(1.6, 6.0);
            let rtt = random.between(8.0, 80.0);
            case.far = format!("rate={:.0}kbit,rtt={rtt:.0}ms,queue=1bdp", beyond * 1000.0);
        }
        Truth::Line => {
            let near = random.between(60.0, 150.0);
            let rate = near / random.between(1.6, 8.0);
            let rtt = random.between(8.0, 60.0);
            case.near = near_link(&mut random, near, draw);
            case.far = format!(
                "rate={:.0}kbit,rtt={rtt:.0}ms,queue={}",
                rate * 1000.0,
                random.one_of(&["1bdp", "2bdp", "4bdp", "fq_codel"])
            );
        }
        Truth::Far => {
            let near = random.between(80.0, 150.0);
            let rtt = random.between(60.0, 180.0);
            case.near = near_link(&mut random, near, draw);
            let mut far = format!("rate={:.0}kbit,rtt={rtt:.0}ms,queue=1bdp", near * 1000.0);
            if (number / Truth::ALL.len()).is_multiple_of(2) {
                let loss = random.between(0.4, 2.5);
                far += &format!(",loss={loss:.2}%,seed={draw}");
            } else {
                // Six flows carry a part of the line's rate.
                let flow = near * 1e6 / 8.0 * rtt / 1e3 / 6.0 / random.between(1.6, 4.0);
                case.window = Some((2.0 * flow).max(32_768.0) as u64);
            }
            case.far = far;
        }
    }
    case
}

/// A first link that is no limit.
fn near_link(random: &mut Random, rate: f64, seed: u64) -> String {
    let jitter = random.between(0.1, 1.0);
    format!(
        "rate={:.0}kbit,rtt=3ms,jitter=exponential:{jitter:.1}ms,queue=400KiB,seed={seed}",
        rate * 1000.0
    )
}
