//! A running lab: hosts, the links between them, and the threads that carry
//! their packets.

use crate::direction::{DirectionCounters, Ends};
use crate::driver::{Command, CommandQueue, Done, Work};
use crate::hosts::{self, Inherited, LabHost};
use crate::interval_log::IntervalLog;
use crate::validity::ValidityCheck;
use crate::watch::{Direction, QueueSample, Watch};
use crate::{LabError, at_once, buffers, idle};
use host::lock::lock;
use host::{clock, limits, memory};
use record::{PathChange, PathReport};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use topology::{PathSpec, Plan, routes};
use units::{ByteCount, Nanos};

/// A running lab. Dropping it stops the emulation; [`Lab::finish`] also reports.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<LabHost>,
    links: Vec<LabLink>,
    accurate: bool,
    epoch: Instant,
    commands: Vec<Arc<CommandQueue>>,
    drivers: Mutex<Vec<JoinHandle<io::Result<Done>>>>,
}

/// One link of it.
#[derive(Debug)]
struct LabLink {
    name: String,
    ends: [usize; 2],
    /// As configured at the start.
    asked: PathSpec,
    seed: u64,
    idle_rtt: Option<Duration>,
    /// Thread of each direction, and its index there.
    driver_slots: [(usize, usize); 2],
    state: Mutex<State>,
}

/// The state of a link that changes while it runs.
#[derive(Debug)]
struct State {
    path: PathSpec,
    /// Time zero of the schedule; `None` before [`Lab::begin`].
    origin: Option<Nanos>,
    changes: Vec<PathChange>,
}

/// Options of a lab.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The emulator busy-waits on one core instead of sleeping.
    pub accurate: bool,
    /// Other labs may run at the same time: the idle RTT is measured without busy-waiting,
    /// which would keep their emulators off the cores.
    pub shared: bool,
    /// Index of the host that is the machine itself: its devices are created in
    /// the machine's namespace. Needs root.
    pub machine: Option<usize>,
}

/// Report on all links of a lab.
#[derive(Debug)]
pub struct LabReport {
    /// In the plan's order.
    pub links: Vec<LinkReport>,
}

/// Report on one link.
#[derive(Debug)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// The names of its ends.
    pub between: [String; 2],
    /// Configured and measured values.
    pub path: PathReport,
    /// Samples of its queues, up and down.
    pub queues: [Vec<QueueSample>; 2],
    /// What happened to each flow, up and down; empty without [`Lab::log_intervals`].
    pub intervals: [IntervalLog; 2],
}

impl LabReport {
    /// The only link's report, or the first's.
    #[must_use]
    pub fn into_path(self) -> PathReport {
        self.links.into_iter().next().map(|link| link.path).unwrap_or_default()
    }
}

/// Driver threads: if only one direction is busy, a core remains for the hosts;
/// more threads than cores would wait for each other.
const THREADS: usize = 2;

impl Lab {
    /// Creates and connects the hosts and measures the idle RTTs. Needs the
    /// privileges of a sandbox ([`host::sandbox`]).
    ///
    /// # Errors
    /// [`LabError`]: nothing is left behind.
    pub fn start(plan: &Plan, options: Options) -> Result<Self, LabError> {
        if let Some(available) = memory::available() {
            plan.check_memory(available)?;
        }
        for host in &plan.hosts {
            hosts::check_congestion(&host.congestion)?;
            hosts::check_settings(&host.sysctls)?;
        }
        // If the limit is too low, creating a device fails.
        let _ = limits::raise_open_files();
        let table = routes::table(plan)?;
        let inherited = Inherited::read();
        let hosts = (0..plan.hosts.len())
            .map(|index| match options.machine {
                Some(machine) if machine == index => LabHost::machine(plan, index, &table),
                _ => LabHost::create(plan, index, &table, &inherited),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut lab = Lab {
            hosts,
            links: Vec::new(),
            accurate: options.accurate,
            epoch: clock::now(),
            commands: Vec::new(),
            drivers: Mutex::default(),
        };
        lab.connect(plan)?;
        lab.measure_idle(plan, &table, options.shared)?;
        Ok(lab)
    }

    /// Starts the threads, each with its share of the directions.
    fn connect(&mut self, plan: &Plan) -> Result<(), LabError> {
        let threads = if self.accurate { 1 } else { THREADS };
        let mut work: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        let mut memory = vec![0; threads];
        let between: Vec<[usize; 2]> = plan.links.iter().map(|link| link.ends).collect();
        let ends = Ends::of_links(&self.hosts, &between);
        for ((index, link), ends) in plan.links.iter().enumerate().zip(ends) {
            let seed = link.path.seed().unwrap_or_else(host::random::seed);
            // Until the lab begins, the settings of the start apply.
            let schedules = link.path.schedules(seed).map(|schedule| schedule.start);
            let mut driver_slots = [(0, 0); 2];
            for (number, (ends, schedule)) in ends.into_iter().zip(schedules).enumerate() {
                // The two directions of a link go to different threads, and
                // the busy ones of several links are spread.
                let thread = (index + number) % threads;
                let Some(ends) = ends else { continue };
                driver_slots[number] = (thread, work[thread].len());
                memory[thread] += link.path.memory().bytes() / 2;
                work[thread].push((ends, schedule.into()));
            }
            self.links.push(LabLink {
                name: link.name.clone(),
                ends: link.ends,
                asked: link.path.clone(),
                seed,
                idle_rtt: None,
                driver_slots,
                state: Mutex::new(State {
                    path: link.path.clone(),
                    origin: None,
                    changes: Vec::new(),
                }),
            });
        }
        for (number, (directions, memory)) in work.into_iter().zip(memory).enumerate() {
            let commands =
                Arc::new(CommandQueue::new().map_err(LabError::system("creating an eventfd"))?);
            self.commands.push(Arc::clone(&commands));
            let work = Work {
                directions,
                memory: buffers::reserve(ByteCount::from_bytes(memory))
                    .map_err(LabError::system("allocating memory"))?,
                commands,
                epoch: self.epoch,
                accurate: self.accurate,
            };
            let driver = std::thread::Builder::new()
                .name(format!("lab-{number}"))
                .spawn(|| work.drive())
                .map_err(LabError::system("starting a thread"))?;
            lock(&self.drivers).push(driver);
        }
        Ok(())
    }

    /// Measures all links that are the route between their own ends, in parallel.
    fn measure_idle(
        &mut self,
        plan: &Plan,
        table: &routes::Table,
        shared: bool,
    ) -> Result<(), LabError> {
        let many = shared || self.links.len() > 1;
        let hosts = &self.hosts;
        let measure = |index: usize, link: &LabLink| {
            let [from, to] = link.ends;
            if table.links_between(plan, from, to) != [index] {
                return Ok(None);
            }
            idle::measure(&hosts[from].namespace, hosts[to].ipv4, &plan.links[index].path, many)
        };
        let times: Vec<Result<_, LabError>> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .links
                .iter()
                .enumerate()
                .map(|(index, link)| scope.spawn(move || measure(index, link)))
                .collect();
            let died = || LabError::Emulator(io::Error::other("a measurement thread panicked"));
            threads.into_iter().map(|thread| thread.join().map_err(|_| died())?).collect()
        });
        for (link, time) in self.links.iter_mut().zip(times) {
            link.idle_rtt = time?;
        }
        Ok(())
    }

    /// Time zero: starts the schedules of the links.
    pub fn begin(&self) {
        let now = self.now();
        for index in 0..self.links.len() {
            let mut state = lock(&self.links[index].state);
            state.origin = Some(now);
            for (thread, direction) in self.links[index].driver_slots {
                self.commands[thread].send(Command::Begin { direction });
            }
            self.reschedule(index, &state);
        }
    }

    /// Changes a link's settings while it runs, such as `loss=1%`.
    ///
    /// # Errors
    /// An unknown link, or invalid settings.
    pub fn set(
        &self,
        link: &str,
        settings: &str,
        reader: &mut dyn FnMut(&str) -> io::Result<String>,
    ) -> Result<(), LabError> {
        let index = self.link_index(link)?;
        // Files are read without holding the lock.
        let now = lock(&self.links[index].state).path.clone();
        let path = now.with(settings, reader)?;
        self.change(index, path, settings)
    }

    /// Changes the path of a link; `settings` is the text for the report.
    pub(crate) fn change(
        &self,
        index: usize,
        path: PathSpec,
        settings: &str,
    ) -> Result<(), LabError> {
        let link = &self.links[index];
        let mut state = lock(&link.state);
        // The memory of the present path was checked before.
        let more = path.memory().bytes().saturating_sub(state.path.memory().bytes());
        check_memory(ByteCount::from_bytes(more), memory::available())?;
        if path.mtu() != link.asked.mtu() {
            return Err(LabError::FixedMtu);
        }
        state.path = path;
        let since = state.origin.unwrap_or(self.now());
        let at_s = self.now().since(since).as_secs_f64();
        state.changes.push(PathChange { at_s, set: settings.to_owned() });
        self.reschedule(index, &state);
        Ok(())
    }

    fn reschedule(&self, index: usize, state: &State) {
        let link = &self.links[index];
        let origin = state.origin.unwrap_or_default();
        let schedules = state.path.schedules(link.seed);
        for ((thread, direction), schedule) in link.driver_slots.into_iter().zip(schedules) {
            let schedule = Box::new(match state.origin {
                Some(_) => schedule,
                None => schedule.start.into(),
            });
            self.commands[thread].send(Command::Reschedule { direction, origin, schedule });
        }
    }

    fn link_index(&self, name: &str) -> Result<usize, LabError> {
        self.links.iter().position(|link| link.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.links.iter().map(|link| link.name.as_str()).collect();
            LabError::NoLink { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// Watches links from here on, all or those of one host, and takes so many
    /// bytes of each packet.
    ///
    /// # Errors
    /// No such host.
    pub fn watch(&self, host: Option<&str>, bytes: usize) -> Result<Watch, LabError> {
        let host = host.map(|name| self.host_index(name)).transpose()?;
        let (watch, tap) = Watch::new(bytes);
        for link in &self.links {
            if host.is_some_and(|host| !link.ends.contains(&host)) {
                continue;
            }
            for (thread, direction) in link.driver_slots {
                self.commands[thread].send(Command::AddTap { direction, tap: tap.clone() });
            }
        }
        Ok(watch)
    }

    /// Logs what happens to the packets of each flow on every link from here on, in
    /// intervals of 10 ms; [`LinkReport::intervals`] has the log. It is meant for runs of
    /// up to ten minutes.
    pub fn log_intervals(&self) {
        for (thread, direction) in self.links.iter().flat_map(|link| link.driver_slots) {
            self.commands[thread].send(Command::LogIntervals { direction });
        }
    }

    /// Its hosts, in the plan's order.
    #[must_use]
    pub fn hosts(&self) -> &[LabHost] {
        &self.hosts
    }

    /// A host by its name.
    ///
    /// # Errors
    /// If there is none.
    pub fn host(&self, name: &str) -> Result<&LabHost, LabError> {
        Ok(&self.hosts[self.host_index(name)?])
    }

    fn host_index(&self, name: &str) -> Result<usize, LabError> {
        self.hosts.iter().position(|host| host.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.hosts.iter().map(|host| host.name.as_str()).collect();
            LabError::NoHost { name: name.to_owned(), known: known.join(", ") }
        })
    }

    /// The first host: of a pair the client, which sends upwards.
    #[must_use]
    pub fn client(&self) -> &LabHost {
        &self.hosts[0]
    }

    /// The second host: of a pair the server.
    #[must_use]
    pub fn server(&self) -> &LabHost {
        &self.hosts[1]
    }

    /// The path of the first link, as configured.
    #[must_use]
    pub fn path(&self) -> &PathSpec {
        &self.links[0].asked
    }

    /// Names of the links and of their ends, in the plan's order.
    pub fn links(&self) -> impl Iterator<Item = (&str, [&str; 2])> {
        self.links
            .iter()
            .map(|link| (link.name.as_str(), link.ends.map(|host| self.hosts[host].name.as_str())))
    }

    /// The paths of the links as configured, in the plan's order.
    pub fn paths(&self) -> impl Iterator<Item = &PathSpec> {
        self.links.iter().map(|link| &link.asked)
    }

    /// Lines for /etc/hosts with the names of all hosts. Resolvers prefer IPv6
    /// without [`crate::PREFER_IPV4`].
    #[must_use]
    pub fn names(&self) -> String {
        self.hosts
            .iter()
            .map(|host| format!("{} {}\n{} {}\n", host.ipv4, host.name, host.ipv6, host.name))
            .collect()
    }

    /// The path of the first link as configured, before there are measurements.
    #[must_use]
    pub fn asked(&self) -> PathReport {
        self.validity_check(&self.links[0], &[], Vec::new(), 0, 0.0).asked()
    }

    fn validity_check<'a>(
        &'a self,
        link: &'a LabLink,
        changes: &'a [PathChange],
        per_direction: Vec<&'a DirectionCounters>,
        dropped: u64,
        cpu: f64,
    ) -> ValidityCheck<'a> {
        let LabLink { asked, seed, idle_rtt, .. } = link;
        let (path, seed, idle_rtt) = (asked, *seed, *idle_rtt);
        ValidityCheck {
            path,
            seed,
            accurate: self.accurate,
            idle_rtt,
            changes,
            per_direction,
            dropped,
            cpu,
        }
    }

    /// Whether all driver threads run; otherwise [`Lab::finish`] returns the error.
    #[must_use]
    pub fn is_emulating(&self) -> bool {
        !lock(&self.drivers).iter().any(JoinHandle::is_finished)
    }

    /// When the lab was created: time zero of records and samples.
    #[must_use]
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Ends the emulation and reports on its validity.
    ///
    /// # Errors
    /// If a driver failed, or the counters of a device cannot be read.
    pub fn finish(&self) -> Result<LabReport, LabError> {
        self.commands.iter().for_each(|commands| commands.stop());
        let (mut per_direction, mut cpu) = (Vec::new(), 0.0_f64);
        for driver in lock(&self.drivers).drain(..) {
            let died = || LabError::Emulator(io::Error::other("its thread panicked"));
            let done = driver.join().map_err(|_| died())?.map_err(LabError::Emulator)?;
            cpu = cpu.max(done.cpu);
            per_direction.extend(done.directions);
        }
        // A tap still in the queue would wait forever.
        self.commands.iter().for_each(|commands| drop(commands.take()));
        let mut links = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let mut dropped = 0;
            for host in link.ends {
                let drops = self.hosts[host].drops(index)?;
                dropped += drops.transmit + drops.receive;
            }
            let changes = lock(&link.state).changes.clone();
            let own: Vec<&DirectionCounters> =
                per_direction.iter().filter(|totals| totals.link == index).collect();
            let of_direction = [Direction::Up, Direction::Down]
                .map(|direction| own.iter().find(|totals| totals.direction == direction));
            let queues =
                of_direction.map(|one| one.map(|one| one.samples.clone()).unwrap_or_default());
            let intervals =
                of_direction.map(|one| one.map(|one| one.intervals.clone()).unwrap_or_default());
            links.push(LinkReport {
                name: link.name.clone(),
                between: link.ends.map(|host| self.hosts[host].name.clone()),
                path: self.validity_check(link, &changes, own, dropped, cpu).report(),
                queues,
                intervals,
            });
        }
        Ok(LabReport { links })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.commands.iter().for_each(|commands| commands.stop());
        for driver in lock(&self.drivers).drain(..) {
            // Errors cannot be reported on drop.
            let _ = driver.join();
        }
        let devices = self.hosts.iter_mut().flat_map(|host| std::mem::take(&mut host.devices));
        at_once::drop_each(devices.collect());
    }
}

/// Refuses paths whose packets in flight could fill the machine's memory.
fn check_memory(needed: ByteCount, available: Option<ByteCount>) -> Result<(), LabError> {
    // Small packets take more memory than their bytes, and hosts need as much
    // again for their sockets: half of the available memory is the limit.
    match available {
        Some(available) if needed > ByteCount::from_bytes(available.bytes() / 2) => {
            Err(LabError::Memory { needed, available })
        }
        _ => Ok(()),
    }
}
