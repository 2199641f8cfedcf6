//! A running lab: hosts, the links between them, and the threads that carry
//! their packets.

mod start;

use crate::direction::DirectionCounters;
use crate::driver::{Command, CommandQueue, Done};
use crate::driver_choice::{self, ChosenDriver};
use crate::forwarding::Forwarding;
use crate::hosts::LabHost;
use crate::idle::IdleRtt;
use crate::interval_log::IntervalLog;
use crate::validity::ValidityCheck;
use crate::watch::{LinkDirection, QueueSample, Watch};
use crate::{LabError, at_once};
use host::cpu::Confinement;
use host::lock::lock;
use host::memory;
use host::netlink::DeviceDrops;
use record::{PathChange, PathDriver, PathReport};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use topology::{DriverChoice, PathSpec};
use units::{ByteCount, Nanos};

/// A running lab. Dropping it stops the emulation; [`Lab::finish`] also reports.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<LabHost>,
    /// The namespace between them, if the kernel holds their packets.
    between: Option<Forwarding>,
    driver: ChosenDriver,
    links: Vec<LabLink>,
    accurate: bool,
    epoch: Instant,
    commands: Vec<Arc<CommandQueue>>,
    drivers: Mutex<Vec<JoinHandle<io::Result<Done>>>>,
    coverage: Mutex<Coverage>,
    /// Of the programs that the thread which started the lab starts.
    confinement: Option<Confinement>,
}

/// Which part of a run its report covers.
#[derive(Debug, Default)]
struct Coverage {
    /// Time zero.
    began: Option<Nanos>,
    /// Time from there that was declared not to be covered.
    omit: Option<Duration>,
    /// Where the covered part began, and what the devices of each link had dropped by then.
    from: Option<(Nanos, Vec<u64>)>,
}

impl Coverage {
    /// From when on the report covers the run, since time zero; `None` if the run ended before.
    fn covered_from(&self) -> Option<Duration> {
        match (self.omit, &self.from, self.began) {
            (None, ..) => Some(Duration::ZERO),
            (Some(_), Some((from, _)), Some(began)) => Some(from.since(began)),
            _ => None,
        }
    }
}

/// One link of it.
#[derive(Debug)]
struct LabLink {
    name: String,
    ends: [usize; 2],
    /// As configured at the start.
    asked: PathSpec,
    seed: u64,
    idle_rtt: Option<IdleRtt>,
    /// The longest train that its hosts send where the kernel holds packets; `None`: any.
    longest_train: Option<u32>,
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
    /// What is to carry the packets; `None`: what the plan says.
    pub driver: Option<DriverChoice>,
    /// Links are meant to be changed while the lab runs, to settings that are not known yet.
    pub changing: bool,
    /// Time from the start of the clock that the report does not cover.
    pub omit: Option<Duration>,
    /// Other labs may run at the same time: the idle RTT is measured without busy-waiting,
    /// which would keep their emulators off the cores.
    pub shared: bool,
    /// Longest time for measuring the idle RTT of a link whose delay varies; `None`: 0.6 s.
    /// With few echoes it is inaccurate, and it is left out where fewer than five fit.
    pub idle_time: Option<Duration>,
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

impl Lab {
    /// Time zero: starts the schedules of the links.
    pub fn begin(&self) {
        let now = self.now();
        lock(&self.coverage).began = Some(now);
        for index in 0..self.links.len() {
            let mut state = lock(&self.links[index].state);
            state.origin = Some(now);
            for (thread, direction) in self.links[index].driver_slots {
                self.commands[thread].send(Command::Begin { direction });
            }
            self.reschedule(index, &state);
        }
    }

    /// Begins the part of the run that the report covers, if it is time to: to be called now and
    /// then while the lab runs.
    ///
    /// # Errors
    /// If the counters of a device cannot be read.
    pub(crate) fn omit_when_due(&self) -> Result<(), LabError> {
        let mut coverage = lock(&self.coverage);
        let (Some(began), Some(omit), None) = (coverage.began, coverage.omit, &coverage.from)
        else {
            return Ok(());
        };
        if self.now().since(began) < omit {
            return Ok(());
        }
        // What is dropped while the counters are read is covered.
        let dropped = (0..self.links.len()).map(|link| self.dropped(link));
        let dropped = dropped.collect::<Result<_, _>>()?;
        for (thread, direction) in self.links.iter().flat_map(|link| link.driver_slots) {
            self.commands[thread].send(Command::Omit { direction });
        }
        coverage.from = Some((self.now(), dropped));
        Ok(())
    }

    /// What the devices of a link have dropped.
    fn dropped(&self, link: usize) -> Result<u64, LabError> {
        let mut all = Vec::new();
        for host in self.links[link].ends {
            all.push(self.hosts[host].drops(link)?);
        }
        let between = self.between.as_ref().map_or(Ok(0), |between| between.drops(link))?;
        Ok(between + all.iter().map(DeviceDrops::total).sum::<u64>())
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
        if self.driver.driver == PathDriver::Nfqueue {
            let slower = || {
                let shorter = driver_choice::longest_train([&path].into_iter());
                let is_shorter = shorter
                    .is_some_and(|bytes| link.longest_train.is_none_or(|longest| bytes < longest));
                is_shorter.then(|| "the hosts' gso_max_size was set for a higher rate".to_owned())
            };
            if let Some(reason) = driver_choice::path_needs_tun(&path).or_else(slower) {
                return Err(LabError::NeedsTun { reason });
            }
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

    /// The cores that programs are confined to; `None`: any.
    #[must_use]
    pub fn program_cores(&self) -> Option<&[u32]> {
        self.confinement.as_ref().map(Confinement::cores)
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
        let coverage = lock(&self.coverage);
        let (omit, covered_from) = (coverage.omit, coverage.covered_from());
        ValidityCheck {
            path,
            seed,
            accurate: self.accurate,
            driver: &self.driver,
            omit,
            covered_from,
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
        let (mut per_direction, mut queues, mut cpu) = (Vec::new(), Vec::new(), 0.0_f64);
        for driver in lock(&self.drivers).drain(..) {
            let died = || LabError::Emulator(io::Error::other("its thread panicked"));
            let done = driver.join().map_err(|_| died())?.map_err(LabError::Emulator)?;
            cpu = cpu.max(done.cpu);
            per_direction.extend(done.directions);
            queues.extend(done.queues);
        }
        // A tap still in the queue would wait forever.
        self.commands.iter().for_each(|commands| drop(commands.take()));
        let mut links = Vec::new();
        let omitted = lock(&self.coverage).from.as_ref().map(|(_, dropped)| dropped.clone());
        for (index, link) in self.links.iter().enumerate() {
            let before = omitted.as_ref().map_or(0, |dropped| dropped[index]);
            let dropped = self.dropped(index)?.saturating_sub(before);
            let changes = lock(&link.state).changes.clone();
            let own: Vec<&DirectionCounters> =
                per_direction.iter().filter(|totals| totals.link == index).collect();
            let of_direction = [LinkDirection::Up, LinkDirection::Down]
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
        // Until here the kernel lists what they have lost.
        drop(queues);
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
