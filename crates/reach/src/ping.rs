//! Probes to one host, evenly spaced, and the statistics of their answers.

use crate::connect::{self, Connects};
use crate::echo::Echoes;
use crate::prober::{Aim, Heard, Prober, What};
use crate::resolve::{Family, resolve};
use crate::tally::{Answer, Tally};
use crate::{ReachError, icmp};
use host::{clock, wait};
use record::{PING_SCHEMA, PingReport};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

/// The most payload that fits an IPv4 packet behind IP's and ICMP's headers.
const MOST_PAYLOAD: usize = 65_535 - 20 - icmp::HEADER;

/// How soon an interruption is seen.
const GLANCE: Duration = Duration::from_millis(50);

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PingMethod {
    /// ICMP echoes; TCP connects to port 443 where this user may send none.
    IcmpOrTcp,
    /// TCP connects to this port.
    Tcp(u16),
}

/// What is asked of [`ping()`].
#[derive(Debug, Clone)]
pub struct PingConfig {
    /// The host's name or address.
    pub host: String,
    /// Which IP version.
    pub family: Family,
    /// What is sent.
    pub method: PingMethod,
    /// How many probes; 0 for as long as nobody stops it.
    pub count: u64,
    /// Time between probes, 1 ms or more.
    pub interval: Duration,
    /// Bytes of payload in each echo.
    pub payload: usize,
    /// An answer after more than this is late.
    pub timeout: Duration,
    /// Local address to send from.
    pub bind: Option<IpAddr>,
    /// The byte of DSCP and ECN; `None` for the system's.
    pub tos: Option<u8>,
    /// Hops that a probe may go; `None` for the system's.
    pub ttl: Option<u8>,
}

/// What happens while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The address is known and the socket open.
    Begun {
        /// The host's address.
        address: IpAddr,
        /// TCP's port; `None` for ICMP echoes.
        port: Option<u16>,
        /// What the user should know.
        notes: Vec<String>,
    },
    /// The host answered.
    Reply {
        /// The probe's number, from 1.
        number: u64,
        /// Who answered.
        from: IpAddr,
        /// Bytes of ICMP in the answer; none of TCP's.
        bytes: usize,
        /// Hops that the answer had left.
        ttl: Option<u8>,
        /// The round trip.
        rtt: Duration,
        /// Whether it came after the timeout.
        late: bool,
        /// Whether the probe had been answered before.
        duplicate: bool,
        /// TCP: whether nobody listens at that port.
        refused: bool,
    },
    /// A router, or this host, gave the probe back.
    Unreached {
        /// The probe's number.
        number: u64,
        /// Who did; `None` for this host.
        from: Option<IpAddr>,
        /// Why.
        why: String,
    },
}

/// Asks a host again and again whether it is there. `tell` hears of each
/// answer; where `stop` says so, it ends with what was heard until then.
///
/// # Errors
/// [`ReachError`]: a name without address, no privilege, no route.
pub fn ping(
    config: &PingConfig,
    tell: &mut dyn FnMut(Event),
    stop: &dyn Fn() -> bool,
) -> Result<PingReport, ReachError> {
    check(config)?;
    let port = match config.method {
        PingMethod::IcmpOrTcp => 0,
        PingMethod::Tcp(port) => port,
    };
    let to = resolve(&config.host, port, config.family, config.bind, stop)?;
    let mut aim = Aim { to, bind: config.bind, tos: config.tos, ttl: config.ttl };
    let mut notes = Vec::new();
    let mut prober: Box<dyn Prober> = match config.method {
        PingMethod::Tcp(_) => Box::new(connects(aim)?),
        PingMethod::IcmpOrTcp => match Echoes::open(aim, config.payload) {
            Ok(echoes) => Box::new(echoes),
            Err(ReachError::Privileges) => {
                aim.to = SocketAddr::new(to.ip(), 443);
                notes.push(
                    "TCP connects instead: this user may send no ICMP echoes; run it with sudo, \
                     setcap cap_net_raw+ep on the program, or widen net.ipv4.ping_group_range"
                        .to_owned(),
                );
                Box::new(connects(aim)?)
            }
            Err(error) => return Err(error),
        },
    };
    let port = Some(aim.to.port()).filter(|port| *port != 0);
    let timeout = if port.is_some() && config.timeout > connect::PATIENCE {
        connect::PATIENCE
    } else {
        config.timeout
    };
    tell(Event::Begun { address: to.ip(), port, notes: notes.clone() });
    let started_unix_s = clock::unix_seconds();
    let mut run = Run { config, tally: Tally::new(timeout), tell };
    run.carry_out(prober.as_mut(), stop).map_err(|source| ReachError::System {
        operation: "wait for answers",
        address: to.ip(),
        source,
    })?;
    let tally = run.tally;
    let waiting = if stop() { tally.waiting(clock::now()) } else { 0 };
    let lost = tally.sent.saturating_sub(tally.received + tally.late + waiting);
    let settled = tally.sent - waiting;
    Ok(PingReport {
        schema: PING_SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_s,
        target: config.host.clone(),
        address: to.ip().to_string(),
        method: if port.is_some() { "tcp" } else { "icmp" },
        port,
        payload_bytes: if port.is_some() { 0 } else { config.payload },
        interval_ms: config.interval.as_secs_f64() * 1e3,
        timeout_ms: timeout.as_secs_f64() * 1e3,
        sent: tally.sent,
        received: tally.received,
        late: tally.late,
        lost,
        waiting,
        loss: if settled == 0 { 0.0 } else { lost as f64 / settled as f64 },
        duplicates: tally.duplicates,
        reordered: tally.reordered,
        errors: tally.errors,
        round_trips: tally.round_trips(),
        probes: tally.probes(),
        notes,
    })
}

fn check(config: &PingConfig) -> Result<(), ReachError> {
    let wrong = |what: String, remedy| Err(ReachError::Setting { what, remedy });
    if config.interval < Duration::from_millis(1) {
        return wrong(format!("an interval of {:?}", config.interval), "give 1 ms or more");
    }
    if config.timeout.is_zero() {
        return wrong("a timeout of 0".to_owned(), "give a time above 0, such as 2s");
    }
    if config.payload > MOST_PAYLOAD {
        return wrong(format!("{} bytes of payload", config.payload), "give 65507 or fewer");
    }
    if config.method == PingMethod::Tcp(0) {
        return wrong("TCP port 0".to_owned(), "ports are 1 to 65535");
    }
    if config.ttl == Some(0) {
        return wrong("a TTL of 0".to_owned(), "give 1 to 255");
    }
    Ok(())
}

/// A socket as each probe will need one is tried first: what is wrong with it
/// is wrong with all.
fn connects(aim: Aim) -> Result<Connects, ReachError> {
    use socket2::{Protocol, Type};
    aim.socket(Type::STREAM, Protocol::TCP).map_err(|error| aim.refusal(error))?;
    Connects::new(aim).map_err(|error| aim.refusal(error))
}

struct Run<'a> {
    config: &'a PingConfig,
    tally: Tally,
    tell: &'a mut dyn FnMut(Event),
}

impl Run<'_> {
    fn carry_out(
        &mut self,
        prober: &mut dyn Prober,
        stop: &dyn Fn() -> bool,
    ) -> std::io::Result<()> {
        wait::precise_timers();
        let mut heard = Vec::new();
        let mut next = clock::now();
        while !stop() {
            let now = clock::now();
            let all = self.config.count > 0 && self.tally.sent >= self.config.count;
            if all && self.tally.waiting(now) == 0 {
                break;
            }
            if !all && now >= next {
                self.send(prober, now);
                // A program that was held up does not send in a burst what it missed.
                next = (next + self.config.interval).max(now);
            }
            let until = if all { now + GLANCE } else { next };
            let left = until.saturating_duration_since(clock::now());
            // Less than 50 ms matter only at the end of a timeout.
            prober.wait(left.min(if all { GLANCE / 10 } else { GLANCE }))?;
            prober.hear(&mut heard)?;
            for heard in heard.drain(..) {
                self.hear(heard);
            }
        }
        Ok(())
    }

    fn send(&mut self, prober: &mut dyn Prober, now: Instant) {
        let number = self.tally.sent + 1;
        // The low 16 bits of a number are what a probe carries.
        let seq = u16::try_from(number & 0xffff).unwrap_or_default();
        match prober.send(seq, None) {
            Ok(at) => self.tally.send(at),
            Err(error) => {
                self.tally.send(now);
                self.tally.fail(number);
                let why = format!("cannot send: {error}");
                (self.tell)(Event::Unreached { number, from: None, why });
            }
        }
    }

    fn hear(&mut self, heard: Heard) {
        let Some(number) = self.tally.number(heard.seq) else { return };
        match heard.what {
            What::Reply | What::Closed => {
                let (Some(from), Some((answer, rtt))) =
                    (heard.from, self.tally.answer(number, heard.at))
                else {
                    return;
                };
                (self.tell)(Event::Reply {
                    number,
                    from,
                    bytes: heard.bytes,
                    ttl: heard.ttl,
                    rtt,
                    late: answer == Answer::Late,
                    duplicate: answer == Answer::Duplicate,
                    refused: heard.what == What::Closed,
                });
            }
            What::Expired => self.came_back(number, heard.from, "time to live exceeded".to_owned()),
            What::Unreached(why) => self.came_back(number, heard.from, why),
        }
    }

    fn came_back(&mut self, number: u64, from: Option<IpAddr>, why: String) {
        if self.tally.fail(number) {
            (self.tell)(Event::Unreached { number, from, why });
        }
    }
}
