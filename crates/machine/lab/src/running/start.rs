//! Starting a lab: hosts, what is between them, threads, the idle RTTs.

use super::{Coverage, Lab, LabLink, Options, State};
use crate::carrier::CarrierEnds;
use crate::cores::Cores;
use crate::direction::Ends;
use crate::driver::{CommandQueue, Work};
use crate::driver_choice::{self, ChosenDriver};
use crate::forwarding::Forwarding;
use crate::hosts::{self, Defaults, LabHost};
use crate::watch::LinkDirection;
use crate::{LabError, buffers, idle, tun_carrier};
use host::lock::lock;
use host::{clock, limits, memory};
use record::PathDriver;
use std::io;
use std::sync::{Arc, Mutex};
use topology::{DriverChoice, Plan, routes};
use units::ByteCount;

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
        for link in &plan.links {
            hosts::check_path(&link.path)?;
        }
        for host in &plan.hosts {
            hosts::check_congestion(&host.congestion)?;
            hosts::check_settings(&host.sysctls)?;
        }
        // If the limit is too low, creating a device fails.
        let _ = limits::raise_open_files();
        let table = routes::table(plan)?;
        let unsuited = unsuited(plan, options);
        let asked = options.driver.unwrap_or(plan.driver);
        if let (DriverChoice::Nfqueue, Some(reason)) = (asked, &unsuited) {
            return Err(LabError::NeedsTun { reason: reason.clone() });
        }
        let mut lab = match unsuited {
            Some(reason) => Lab::build(plan, options, &table, ChosenDriver::tun(reason))?,
            None => {
                Lab::build(plan, options, &table, ChosenDriver::nfqueue()).or_else(|error| {
                    if asked == DriverChoice::Nfqueue {
                        return Err(error);
                    }
                    let chosen = ChosenDriver::tun(format!("NFQUEUE is not available: {error}"));
                    Lab::build(plan, options, &table, chosen)
                })?
            }
        };
        lab.measure_idle(plan, &table, options)?;
        Ok(lab)
    }

    /// Creates and connects the hosts with a driver.
    fn build(
        plan: &Plan,
        options: Options,
        table: &routes::Table,
        driver: ChosenDriver,
    ) -> Result<Self, LabError> {
        let between = (driver.driver == PathDriver::Nfqueue).then(Forwarding::create).transpose();
        let between = between.map_err(LabError::system("creating a network namespace"))?;
        let cores = between
            .as_ref()
            .filter(|between| between.steering && !options.accurate && !options.shared)
            .and_then(|_| Cores::divide());
        let defaults = Defaults::read(cores.as_ref());
        let hosts = (0..plan.hosts.len())
            .map(|index| match options.machine {
                Some(machine) if machine == index => LabHost::machine(plan, index, table),
                _ => LabHost::create(plan, index, table, &defaults, between.as_ref()),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mut lab = Lab {
            hosts,
            between,
            driver,
            links: Vec::new(),
            accurate: options.accurate,
            epoch: clock::now(),
            commands: Vec::new(),
            drivers: Mutex::default(),
            coverage: Mutex::new(Coverage { omit: options.omit, ..Coverage::default() }),
            confinement: None,
        };
        lab.connect(plan, cores.as_ref())?;
        lab.confinement = cores.and_then(|cores| cores.confine_programs(plan));
        Ok(lab)
    }

    /// What carries the packets of both directions of each link.
    fn carriers(&self, plan: &Plan) -> Result<Vec<[CarrierEnds; 2]>, LabError> {
        if let Some(between) = &self.between {
            let queues =
                between.connect(plan).map_err(LabError::system("opening packet queues"))?;
            return Ok(queues.into_iter().map(|both| both.map(CarrierEnds::Queue)).collect());
        }
        let ends: Vec<[usize; 2]> = plan.links.iter().map(|link| link.ends).collect();
        let devices = tun_carrier::of_links(&self.hosts, &ends)
            .map_err(LabError::system("opening the devices of the links"))?;
        Ok(devices.into_iter().map(|both| both.map(CarrierEnds::Tun)).collect())
    }

    /// Starts the threads, each with its share of the directions.
    fn connect(&mut self, plan: &Plan, cores: Option<&Cores>) -> Result<(), LabError> {
        let threads = if self.accurate { 1 } else { THREADS };
        let threads = cores.map_or(threads, |cores| cores.drivers.len());
        let mut work: Vec<Vec<_>> = (0..threads).map(|_| Vec::new()).collect();
        let mut memory = vec![0; threads];
        let carriers = self.carriers(plan)?;
        for ((index, link), carriers) in plan.links.iter().enumerate().zip(carriers) {
            let seed = link.path.seed().unwrap_or_else(host::random::seed);
            // Until the lab begins, the settings of the start apply.
            let schedules = link.path.schedules(seed).map(|schedule| schedule.start);
            let mut driver_slots = [(0, 0); 2];
            for (number, (carrier, schedule)) in carriers.into_iter().zip(schedules).enumerate() {
                // The two directions of a link go to different threads, and
                // the busy ones of several links are spread.
                let thread = (index + number) % threads;
                let direction = [LinkDirection::Up, LinkDirection::Down][number];
                driver_slots[number] = (thread, work[thread].len());
                if matches!(carrier, CarrierEnds::Tun(_)) {
                    memory[thread] += link.path.memory().bytes() / 2;
                }
                let ends = Ends { link: index, direction, carrier };
                work[thread].push((ends, schedule.into()));
            }
            self.links.push(LabLink {
                name: link.name.clone(),
                ends: link.ends,
                asked: link.path.clone(),
                seed,
                idle_rtt: None,
                longest_train: driver_choice::longest_train(plan.paths_of(index)),
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
                core: cores.and_then(|cores| cores.drivers.get(number).copied()),
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
        options: Options,
    ) -> Result<(), LabError> {
        let many = options.shared || self.links.len() > 1;
        let hosts = &self.hosts;
        let measure = |index: usize, link: &LabLink| {
            let [from, to] = link.ends;
            if table.links_between(plan, from, to) != [index] {
                return Ok(None);
            }
            let path = &plan.links[index].path;
            let echoes = idle::Echoes::new(path, many, options.idle_time);
            idle::measure(&hosts[from].namespace, hosts[to].ipv4, path, echoes)
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
}

/// Why a lab gets TUN, whatever is available.
fn unsuited(plan: &Plan, options: Options) -> Option<String> {
    match options.driver.unwrap_or(plan.driver) {
        DriverChoice::Tun => Some("as requested".to_owned()),
        _ if options.machine.is_some() => Some("a host is the machine itself".to_owned()),
        DriverChoice::Auto if options.changing => {
            Some("links may be changed to any settings while the lab is up".to_owned())
        }
        DriverChoice::Auto | DriverChoice::Nfqueue => driver_choice::needs_tun(plan),
    }
}
