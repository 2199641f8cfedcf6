//! The runs: each family's applications, the path, and what limits them by how they are made.

use crate::app::Step;
use control::Algorithm::{self, Bbr, Cubic, NewReno};
use record::Limit;
use simulator::draws::{BasePath, Draws};
use std::time::Duration;

/// A run: applications over a path.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) family: &'static str,
    pub(crate) number: usize,
    /// The path, in the syntax of `--link`.
    pub(crate) path: String,
    pub(crate) rtt: Duration,
    pub(crate) congestion: Algorithm,
    pub(crate) steps: Vec<Step>,
    pub(crate) seconds: f64,
    /// The data goes from the server to the client.
    pub(crate) server_sends: bool,
    /// Segments are sent at once, however short (`TCP_NODELAY`).
    pub(crate) no_delay: bool,
    /// The largest receive window, in bytes; `None`: ample.
    pub(crate) window: Option<f64>,
    /// The limit, where the application always has more to send but for short pauses.
    pub(crate) control: Option<Limit>,
    /// Where a capture in the middle is made, 0 at the client, 1 at the server.
    pub(crate) middle: f64,
    /// Draws of the views that hide a part of the capture.
    pub(crate) hidden: Hidden,
}

/// What the views of a part of the packets are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hidden {
    /// Where a capture without its start, and one of one direction, were made.
    pub(crate) points: [f64; 2],
    /// The share of the packets before the start.
    pub(crate) before: f64,
    /// Whether the direction that is left is that of the client's packets.
    pub(crate) from_client: bool,
}

type Draw = fn(&mut Draws, &BasePath) -> Vec<Step>;

/// A family: its name, what its applications do, and of controls the limit.
type Family = (&'static str, Draw, Option<Limit>);

const FAMILIES: [Family; 12] = [
    ("rpc", rpc, None),
    ("http1-pages", pages, None),
    ("http2-pages", multiplexed_pages, None),
    ("streaming", streaming, None),
    ("cbr", constant_rate, None),
    ("backup", backup, None),
    ("interactive", interactive, None),
    ("small-writes", small_writes, None),
    ("idle-tail", idle_tail, None),
    ("bulk-window", bulk, Some(Limit::ReceiveWindow)),
    ("bulk-link", bulk, Some(Limit::PathRate)),
    ("bulk-loss", bulk, Some(Limit::Loss)),
];

/// The names of the families.
pub(crate) fn families() -> impl Iterator<Item = &'static str> {
    FAMILIES.iter().map(|family| family.0)
}

/// The share of the time with nothing to send that applications are drawn to have, and the most of
/// controls.
const IDLE: f64 = 0.65;
const BUSY: f64 = 0.25;

/// The run of that number for a seed.
pub(crate) fn case(seed: u64, number: usize) -> Case {
    let (family, draw, control) = FAMILIES[number % FAMILIES.len()];
    let draws = &mut Draws::new(seed, number);
    let base = match control {
        None => within(draws, (2.0, 100.0), (4.0, 200.0)),
        Some(Limit::ReceiveWindow) => within(draws, (20.0, 100.0), (20.0, 150.0)),
        Some(Limit::PathRate) => within(draws, (1.0, 20.0), (10.0, 100.0)),
        Some(_) => within(draws, (60.0, 100.0), (20.0, 80.0)),
    };
    let queue = draws.drop_tail(&base, (1.0, 2.0), 40.0);
    let loss = match control {
        None if draws.chance(0.3) => draws.log(0.01, 0.5),
        Some(Limit::Loss) => draws.log(0.5, 3.0),
        _ => 0.0,
    };
    let loss = if loss > 0.0 { format!(",loss={loss:.4}%") } else { String::new() };
    let window = (control == Some(Limit::ReceiveWindow))
        .then(|| (draws.between(0.15, 0.5) * base.bdp()).clamp(20_000.0, 2e6));
    let mut steps = draw(draws, &base);
    for _ in 0..1000 {
        let idle = expected_idle(&steps, &base, window);
        if control.map_or(idle >= IDLE, |_| idle <= BUSY) {
            break;
        }
        steps = draw(draws, &base);
    }
    let point = |draws: &mut Draws| {
        let middle = draws.between(0.2, 0.8);
        draws.one(&[0.0, middle, 1.0])
    };
    Case {
        family,
        number,
        path: format!("{},{queue}{loss}", base.path()),
        rtt: Duration::from_secs_f64(base.rtt / 1e3),
        // BBR does not slow down for losses.
        congestion: match control {
            Some(Limit::Loss) => draws.loss_based(),
            _ => draws.one(&[Cubic, Cubic, Cubic, NewReno, Bbr]),
        },
        steps,
        seconds: base.seconds,
        server_sends: draws.chance(0.7),
        no_delay: draws.chance(0.8),
        window,
        control,
        middle: draws.between(0.2, 0.8),
        hidden: Hidden {
            points: [point(draws), point(draws)],
            before: draws.between(0.03, 0.3),
            from_client: draws.chance(0.5),
        },
    }
}

fn within(draws: &mut Draws, rate: (f64, f64), rtt: (f64, f64)) -> BasePath {
    let (rate, rtt) = (draws.log(rate.0, rate.1), draws.log(rtt.0, rtt.1));
    BasePath { rate, rtt, seconds: draws.between(6.0, 10.0) }
}

/// Seconds that data takes on the path: some rounds of slow start, and then the rate.
fn transfer_s(bytes: f64, base: &BasePath, window: Option<f64>) -> f64 {
    let rate = window.map_or(base.rate * 1e6, |it| (it * 8e3 / base.rtt).min(base.rate * 1e6));
    let rounds = (bytes.min(base.bdp()) / 14_480.0 + 1.0).log2().floor();
    bytes * 8.0 / rate + rounds * base.rtt / 1e3
}

/// The share of the time in which the sender will have nothing to send.
fn expected_idle(steps: &[Step], base: &BasePath, window: Option<f64>) -> f64 {
    let (mut now, mut idle) = (0.0f64, 0.0);
    for step in steps.iter().cycle().take(100_000) {
        let began = now;
        match *step {
            Step::Request { after, .. } => now += after.as_secs_f64() + base.rtt / 1e3,
            Step::Wait(time) => now += time.as_secs_f64(),
            Step::Tick(period) => {
                now = now.max((now / period.as_secs_f64()).ceil() * period.as_secs_f64());
            }
            Step::Data(bytes) => now += transfer_s(bytes as f64, base, window),
        }
        now = now.min(base.seconds);
        let is_data = matches!(step, Step::Data(_));
        idle += if is_data { 0.0 } else { now - began };
        if now >= base.seconds {
            break;
        }
    }
    idle / now.max(1e-9)
}

fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms.max(0.0) / 1e3)
}

fn request(after_ms: f64, bytes: f64) -> Step {
    Step::Request { after: ms(after_ms), bytes: bytes as usize }
}

fn data(bytes: f64) -> Step {
    Step::Data(bytes.max(1.0) as usize)
}

/// Answers to requests, or data that is answered; one side or both take their time.
fn rpc(draws: &mut Draws, _: &BasePath) -> Vec<Step> {
    let (asked, answered) = (draws.log(60.0, 2000.0), draws.log(300.0, 100_000.0));
    let slow = draws.one(&[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]);
    let [server, client] = slow.map(|is| is * draws.log(5.0, 1500.0));
    let is_upload = draws.chance(0.3);
    let mut steps = Vec::new();
    for _ in 0..40 {
        let size = answered * draws.log(0.5, 2.0);
        let [server, client] = [server, client].map(|think| think * draws.between(0.7, 1.3));
        if is_upload {
            steps.extend([data(size), request(server, asked), Step::Wait(ms(client))]);
        } else {
            steps.extend([request(client, asked), Step::Wait(ms(server)), data(size)]);
        }
    }
    steps
}

/// Objects one after the other on a connection, and a pause in which the page is read.
fn pages(draws: &mut Draws, _: &BasePath) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..8 {
        let read = draws.log(400.0, 4000.0);
        for object in 0..draws.between(2.0, 12.0) as usize {
            let after = if object == 0 { read } else { draws.between(0.0, 20.0) };
            let size = draws.log(1500.0, 120_000.0);
            let think = draws.log(1.0, 50.0);
            steps.extend([request(after, draws.between(300.0, 900.0)), Step::Wait(ms(think))]);
            steps.push(data(size));
        }
    }
    steps
}

/// The document, then requests of all objects at once, answered as they become ready.
fn multiplexed_pages(draws: &mut Draws, _: &BasePath) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..8 {
        let read = draws.log(400.0, 4000.0);
        steps.extend([request(read, draws.between(200.0, 500.0))]);
        steps.extend([Step::Wait(ms(draws.log(5.0, 200.0))), data(draws.log(8000.0, 80_000.0))]);
        let objects = draws.between(3.0, 25.0);
        steps.push(request(draws.between(5.0, 40.0), objects.floor() * 60.0));
        for _ in 0..objects as usize {
            steps.extend([Step::Wait(ms(draws.log(0.2, 40.0))), data(draws.log(1000.0, 80_000.0))]);
        }
    }
    steps
}

/// A chunk every second or so, which is asked for or pushed.
fn streaming(draws: &mut Draws, base: &BasePath) -> Vec<Step> {
    let period = draws.between(600.0, 3000.0);
    let share = draws.between(0.05, 0.3);
    let is_pulled = draws.chance(0.6);
    let mut steps = Vec::new();
    for _ in 0..12 {
        let size = share * base.rate * 125.0 * period * draws.between(0.7, 1.3);
        if is_pulled {
            steps.push(request(0.0, draws.between(200.0, 800.0)));
            steps.push(data(size));
            steps.push(Step::Tick(ms(period)));
        } else {
            steps.extend([Step::Tick(ms(period)), data(size)]);
        }
    }
    steps
}

/// Writes at even times, of the same or of changing size.
fn constant_rate(draws: &mut Draws, base: &BasePath) -> Vec<Step> {
    let period = draws.log(5.0, 300.0);
    let share = draws.log(0.01, 0.3);
    let changes = if draws.chance(0.3) { 2.0 } else { 1.0 };
    let size = (share * base.rate * 125.0 * period).max(100.0);
    let steps =
        (0..50).map(|_| [Step::Tick(ms(period)), data(size * draws.log(1.0 / changes, changes))]);
    steps.collect::<Vec<_>>().concat()
}

/// Blocks of files, and pauses in which the next ones are read and compressed.
fn backup(draws: &mut Draws, base: &BasePath) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..8 {
        let busy = draws.between(200.0, 900.0);
        steps.extend([
            data(base.rate * 125.0 * busy),
            Step::Wait(ms(busy * draws.between(2.0, 5.0))),
        ]);
    }
    steps
}

/// Keys and their echoes, and now and then a screen.
fn interactive(draws: &mut Draws, _: &BasePath) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..60 {
        steps.push(request(draws.log(40.0, 700.0), draws.between(28.0, 80.0)));
        steps.push(Step::Wait(ms(draws.log(0.1, 8.0))));
        let screen = draws.chance(0.15);
        steps.push(data(if screen {
            draws.log(800.0, 12_000.0)
        } else {
            draws.between(28.0, 200.0)
        }));
    }
    steps
}

/// Messages of a log or of a sensor: small, at any time.
fn small_writes(draws: &mut Draws, _: &BasePath) -> Vec<Step> {
    let gap = draws.log(10.0, 400.0);
    let spread = if draws.chance(0.5) { 4.0 } else { 1.2 };
    let steps = (0..80).map(|_| {
        let pause = gap * draws.log(1.0 / spread, spread);
        [Step::Wait(ms(pause)), data(draws.log(40.0, 1200.0))]
    });
    steps.collect::<Vec<_>>().concat()
}

/// One transfer, and then nothing for a long time.
fn idle_tail(draws: &mut Draws, base: &BasePath) -> Vec<Step> {
    let busy = draws.between(150.0, 1500.0);
    vec![request(0.0, 300.0), data(base.rate * 125.0 * busy), Step::Wait(ms(60_000.0))]
}

/// Responses that take seconds each, with short pauses.
fn bulk(draws: &mut Draws, base: &BasePath) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..4 {
        let size = base.rate * 125.0 * draws.between(1500.0, 5000.0);
        steps.push(request(draws.between(0.0, 200.0), draws.between(100.0, 800.0)));
        steps.extend([Step::Wait(ms(draws.log(1.0, 100.0))), data(size)]);
    }
    steps
}
