//! A running lab: hosts, the links between them, and the threads that carry
//! their packets.

use crate::certificate::Certificate;
use crate::drive::{Done, Order, Orders, Work};
use crate::hosts::{self, Inherited, LabHost};
use crate::watch::{QueueSample, Watch, Way};
use crate::way::{Ends, Tally};
use crate::{LabError, buffers, idle};
use host::{clock, limits, memory};
use link::Nanos;
use record::{PathChange, PathReport};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use topology::{PathSpec, Plan, routes};
use units::ByteCount;

/// A running lab. Dropping it stops the emulation; [`Lab::finish`] also says how it went.
#[derive(Debug)]
pub struct Lab {
    hosts: Vec<LabHost>,
    links: Vec<LabLink>,
    accurate: bool,
    epoch: Instant,
    orders: Vec<Arc<Orders>>,
    drivers: Mutex<Vec<JoinHandle<io::Result<Done>>>>,
}

/// One link of it.
#[derive(Debug)]
struct LabLink {
    name: String,
    ends: [usize; 2],
    /// As it was asked at the beginning.
    asked: PathSpec,
    seed: u64,
    idle_rtt: Option<Duration>,
    /// Thread and place there of each direction.
    places: [(usize, usize); 2],
    state: Mutex<State>,
}

/// What of a link changes while it runs.
#[derive(Debug)]
struct State {
    path: PathSpec,
    /// Time zero of the schedule; `None` before the lab has begun.
    origin: Option<Nanos>,
    changes: Vec<PathChange>,
}

/// How a lab is to be made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// The emulator spends a core on accuracy and never sleeps.
    pub accurate: bool,
    /// The host of that place in the plan is the machine itself: its end of
    /// the links is a device among the machine's own. Needs root.
    pub machine: Option<usize>,
}

/// How a lab's links did.
#[derive(Debug)]
pub struct LabReport {
    /// In the plan's order.
    pub links: Vec<LinkReport>,
}

/// How one link did.
#[derive(Debug)]
pub struct LinkReport {
    /// Its name.
    pub name: String,
    /// Its ends' names.
    pub between: [String; 2],
    /// Asked and achieved.
    pub path: PathReport,
    /// Its queues over time, up and down.
    pub queues: [Vec<QueueSample>; 2],
}

impl LabReport {
    /// The only link's report, or the first's.
    #[must_use]
    pub fn into_path(self) -> PathReport {
        self.links.into_iter().next().map(|link| link.path).unwrap_or_default()
    }
}

/// Threads that carry packets: one core stays with the hosts where only one
/// direction is busy, and more threads than cores would wait for each other.
const THREADS: usize = 2;

impl Lab {
    /// Makes the hosts, connects them and measures the idle links. Needs the
    /// privileges of a world of its own ([`host::world`]).
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
        // A lab that needs more than there may be fails at the device it cannot have.
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
            orders: Vec::new(),
            drivers: Mutex::default(),
        };
        lab.connect(plan)?;
        lab.measure_idle(plan, &table)?;
        Ok(lab)
    }

    /// Starts the threads, each with its share of the directions.
    fn connect(&mut self, plan: &Plan) -> Result<(), LabError> {
        let threads = if self.accurate { 1 } else { THREADS };
        let mut work: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        let mut room = vec![0; threads];
        for (index, link) in plan.links.iter().enumerate() {
            let seed = link.path.seed().unwrap_or_else(host::random::seed);
            // Until the lab has begun, the settings of its first moment hold.
            let schedules = link.path.schedules(seed).map(|schedule| schedule.start);
            let mut places = [(0, 0); 2];
            for (number, (way, schedule)) in
                [Way::Up, Way::Down].into_iter().zip(schedules).enumerate()
            {
                // The two directions of a link go to different threads, and
                // the busy ones of several links are spread.
                let thread = (index + number) % threads;
                let [from, to] = [link.ends[number], link.ends[1 - number]].map(|host| {
                    let device = self.hosts[host].device(index);
                    device.map(|device| Arc::clone(&device.tun))
                });
                let (Some(from), Some(to)) = (from, to) else { continue };
                places[number] = (thread, work[thread].len());
                room[thread] += link.path.memory().bytes() / 2;
                work[thread].push((Ends { link: index, way, from, to }, schedule.into()));
            }
            self.links.push(LabLink {
                name: link.name.clone(),
                ends: link.ends,
                asked: link.path.clone(),
                seed,
                idle_rtt: None,
                places,
                state: Mutex::new(State {
                    path: link.path.clone(),
                    origin: None,
                    changes: Vec::new(),
                }),
            });
        }
        for (number, (ways, room)) in work.into_iter().zip(room).enumerate() {
            let orders = Arc::new(Orders::new().map_err(LabError::system("making an event"))?);
            self.orders.push(Arc::clone(&orders));
            let work = Work {
                ways,
                room: buffers::reserve(ByteCount::from_bytes(room))
                    .map_err(LabError::system("taking memory"))?,
                orders,
                epoch: self.epoch,
                accurate: self.accurate,
            };
            let driver = std::thread::Builder::new()
                .name(format!("lab-{number}"))
                .spawn(|| work.drive())
                .map_err(LabError::system("starting a thread"))?;
            hold(&self.drivers).push(driver);
        }
        Ok(())
    }

    /// Measures the links over which their own ends reach each other, all at once.
    fn measure_idle(&mut self, plan: &Plan, table: &routes::Table) -> Result<(), LabError> {
        let many = self.links.len() > 1;
        let hosts = &self.hosts;
        let measure = |index: usize, link: &LabLink| {
            let [from, to] = link.ends;
            if table.way(plan, from, to) != [index] {
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
            let died = || LabError::Emulator(io::Error::other("a thread died"));
            threads.into_iter().map(|thread| thread.join().map_err(|_| died())?).collect()
        });
        for (link, time) in self.links.iter_mut().zip(times) {
            link.idle_rtt = time?;
        }
        Ok(())
    }

    /// Time zero: from here on the links' own schedules run.
    pub fn begin(&self) {
        let now = self.now();
        for index in 0..self.links.len() {
            let mut state = hold(&self.links[index].state);
            state.origin = Some(now);
            for (thread, way) in self.links[index].places {
                self.orders[thread].give(Order::Begin { way });
            }
            self.reschedule(index, &state);
        }
    }

    /// Changes a link's settings while it runs, such as `loss=1%`.
    ///
    /// # Errors
    /// A link that is not there, or settings that no link can have.
    pub fn set(
        &self,
        link: &str,
        settings: &str,
        reader: &mut dyn FnMut(&str) -> io::Result<String>,
    ) -> Result<(), LabError> {
        let index = self.link_index(link)?;
        // Files are read without holding what others wait for.
        let now = hold(&self.links[index].state).path.clone();
        let path = now.with(settings, reader)?;
        self.change(index, path, settings)
    }

    /// Gives a link another path; `settings` are the words for it.
    pub(crate) fn change(
        &self,
        index: usize,
        path: PathSpec,
        settings: &str,
    ) -> Result<(), LabError> {
        let link = &self.links[index];
        let mut state = hold(&link.state);
        // What the path has now was granted before.
        let more = path.memory().bytes().saturating_sub(state.path.memory().bytes());
        check_memory(ByteCount::from_bytes(more), memory::available())?;
        if path.mtu() != link.asked.mtu() {
            return Err(LabError::FixedMtu);
        }
        state.path = path;
        let since = state.origin.unwrap_or(self.now());
        #[expect(clippy::cast_precision_loss, reason = "52 bits of nanoseconds are 52 days")]
        let at_s = self.now().since(since) as f64 / 1e9;
        state.changes.push(PathChange { at_s, set: settings.to_owned() });
        self.reschedule(index, &state);
        Ok(())
    }

    fn reschedule(&self, index: usize, state: &State) {
        let link = &self.links[index];
        let origin = state.origin.unwrap_or_default();
        let schedules = state.path.schedules(link.seed);
        for ((thread, way), schedule) in link.places.into_iter().zip(schedules) {
            let schedule = Box::new(match state.origin {
                Some(_) => schedule,
                None => schedule.start.into(),
            });
            self.orders[thread].give(Order::Reschedule { way, origin, schedule });
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
    /// A host that is not there.
    pub fn watch(&self, host: Option<&str>, bytes: usize) -> Result<Watch, LabError> {
        let host = host.map(|name| self.host_index(name)).transpose()?;
        let (watch, teller) = Watch::new(bytes);
        for link in &self.links {
            if host.is_some_and(|host| !link.ends.contains(&host)) {
                continue;
            }
            for (thread, way) in link.places {
                self.orders[thread].give(Order::Tell { way, teller: teller.clone() });
            }
        }
        Ok(watch)
    }

    /// Its hosts, in the plan's order.
    #[must_use]
    pub fn hosts(&self) -> &[LabHost] {
        &self.hosts
    }

    /// A host by its name.
    ///
    /// # Errors
    /// Where there is none.
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

    /// The first link's path, as it was asked.
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

    /// The links' paths as they were asked, in the plan's order.
    pub fn paths(&self) -> impl Iterator<Item = &PathSpec> {
        self.links.iter().map(|link| &link.asked)
    }

    /// Lines for /etc/hosts by which all hosts are found. Where a resolver
    /// may choose it takes IPv6, unless [`crate::PREFER_IPV4`] says otherwise.
    #[must_use]
    pub fn names(&self) -> String {
        self.hosts
            .iter()
            .map(|host| format!("{} {}\n{} {}\n", host.ipv4, host.name, host.ipv6, host.name))
            .collect()
    }

    /// The first link's path as it was asked, before there is anything to certify.
    #[must_use]
    pub fn asked(&self) -> PathReport {
        self.certificate(&self.links[0], &[], Vec::new(), 0, 0.0).asked()
    }

    fn certificate<'a>(
        &'a self,
        link: &'a LabLink,
        changes: &'a [PathChange],
        tallies: Vec<&'a Tally>,
        dropped: u64,
        cpu: f64,
    ) -> Certificate<'a> {
        let LabLink { asked, seed, idle_rtt, .. } = link;
        let (path, seed, idle_rtt) = (asked, *seed, *idle_rtt);
        Certificate {
            path,
            seed,
            accurate: self.accurate,
            idle_rtt,
            changes,
            tallies,
            dropped,
            cpu,
        }
    }

    /// Whether all links are still carried; [`Lab::finish`] tells why not.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        !hold(&self.drivers).iter().any(JoinHandle::is_finished)
    }

    /// When the lab was made: time zero of what watchers are told.
    #[must_use]
    pub const fn epoch(&self) -> Instant {
        self.epoch
    }

    fn now(&self) -> Nanos {
        Nanos(u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    /// Ends the emulation and certifies it.
    ///
    /// # Errors
    /// Where a driver failed or a device cannot be asked.
    pub fn finish(&self) -> Result<LabReport, LabError> {
        self.orders.iter().for_each(|orders| orders.stop());
        let (mut tallies, mut cpu) = (Vec::new(), 0.0_f64);
        for driver in hold(&self.drivers).drain(..) {
            let died = || LabError::Emulator(io::Error::other("its thread died"));
            let done = driver.join().map_err(|_| died())?.map_err(LabError::Emulator)?;
            cpu = cpu.max(done.cpu);
            tallies.extend(done.ways);
        }
        // A watcher told of too late would wait for ever.
        self.orders.iter().for_each(|orders| drop(orders.take()));
        let mut links = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let mut dropped = 0;
            for host in link.ends {
                let drops = self.hosts[host].drops(index)?;
                dropped += drops.transmit + drops.receive;
            }
            let changes = hold(&link.state).changes.clone();
            let own: Vec<&Tally> = tallies.iter().filter(|tally| tally.link == index).collect();
            let queues = [Way::Up, Way::Down].map(|way| {
                let of_way = own.iter().find(|tally| tally.way == way);
                of_way.map(|tally| tally.samples.clone()).unwrap_or_default()
            });
            links.push(LinkReport {
                name: link.name.clone(),
                between: link.ends.map(|host| self.hosts[host].name.clone()),
                path: self.certificate(link, &changes, own, dropped, cpu).report(),
                queues,
            });
        }
        Ok(LabReport { links })
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.orders.iter().for_each(|orders| orders.stop());
        for driver in hold(&self.drivers).drain(..) {
            // A driver's own failure has no one left to hear it.
            let _ = driver.join();
        }
    }
}

/// Refuses paths whose packets in flight could fill the machine's memory.
fn check_memory(needed: ByteCount, available: Option<ByteCount>) -> Result<(), LabError> {
    // Small packets take more memory than they have bytes; hosts need as much
    // again for their sockets. Half of what is free is the most for the wire.
    match available {
        Some(available) if needed > ByteCount::from_bytes(available.bytes() / 2) => {
            Err(LabError::Memory { needed, available })
        }
        _ => Ok(()),
    }
}

fn hold<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
