//! Polls the host's connections and reports the differences between polls.

use crate::counters::Counters;
use crate::owners::{self, Owners};
use crate::select::{Selection, Sort};
use crate::table::{self, Table};
use crate::track::{self, Track};
use crate::transfer::transfer;
use host::sock_diag::SockDiag;
use host::{clock, identity};
use problem::Field;
use record::{
    BbrView, ConnectionId, ConnectionSample, CounterChange, WATCH_SCHEMA, WatchReport,
    WatchedConnection,
};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::BitRate;

/// Payload over the kept samples below which a connection gets no finding, bytes.
const MIN_DIAGNOSED_BYTES: u64 = 16 << 10;

/// Why connections cannot be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// No process has that PID.
    #[error("no process has PID {0}; ps -e lists them")]
    NoProcess(u32),
    /// The process belongs to another user.
    #[error(
        "cannot read the connections of process {0}: it belongs to another user; run as that user, or as root"
    )]
    Forbidden(u32),
    /// The process is in another network namespace.
    #[error(
        "process {0} is in another network namespace; run: nsenter -t {0} -n longhaul watch {pid} {0}",
        pid = Field::Pid
    )]
    Elsewhere(u32),
    /// Neither connections nor counters are available.
    #[error("{0}; no network counters are available either")]
    Nothing(String),
}

/// Watches the connections of the calling thread's network namespace.
pub struct Watcher {
    /// Which connections to report.
    pub selection: Selection,
    /// The order of the report.
    pub sort: Sort,
    proc: PathBuf,
    diag: Option<SockDiag>,
    /// Why connections are unavailable.
    error: Option<String>,
    table: Table,
    owners: Owners,
    counters: Counters,
    changes: Vec<CounterChange>,
    begun: Option<Instant>,
    t_s: f64,
    interval_s: f64,
    /// Whether some `TCP_INFO` had no sender timers.
    lacks_timers: bool,
}

impl Watcher {
    /// Opens the socket diagnosis and the counters.
    ///
    /// # Errors
    /// [`WatchError`]. A kernel without socket diagnosis is not an error while it
    /// has counters; reports then carry a note.
    pub fn open(selection: Selection, sort: Sort) -> Result<Self, WatchError> {
        let proc = PathBuf::from("/proc");
        if let Some(pid) = selection.pid {
            check_access(&proc, pid)?;
        }
        let (diag, error) = match SockDiag::open() {
            Ok(diag) => (Some(diag), None),
            Err(error) => (None, Some(unavailable(&error))),
        };
        let counters = Counters::new(Path::new("/proc/thread-self"));
        if let Some(error) = error.as_ref().filter(|_| !counters.are_available()) {
            return Err(WatchError::Nothing(error.clone()));
        }
        Ok(Watcher {
            selection,
            sort,
            owners: Owners::new(&proc),
            proc,
            diag,
            error,
            table: Table::default(),
            counters,
            changes: Vec::new(),
            begun: None,
            t_s: 0.0,
            interval_s: 0.0,
            lacks_timers: false,
        })
    }

    /// Reads connections and counters once.
    ///
    /// # Errors
    /// [`WatchError::NoProcess`] once the selected process has ended.
    pub fn poll(&mut self) -> Result<(), WatchError> {
        let now = clock::now();
        let begun = *self.begun.get_or_insert(now);
        let t_s = now.duration_since(begun).as_secs_f64();
        (self.interval_s, self.t_s) = (t_s - self.t_s, t_s);
        self.table.begin(t_s);
        if let Some(diag) = &mut self.diag {
            let table = &mut self.table;
            let lacks_timers = &mut self.lacks_timers;
            let dumped = diag.connections(|connection| {
                *lacks_timers |= connection.info.is_some_and(|info| info.busy_us.is_none());
                table.update(connection);
            });
            match dumped {
                Ok(()) => {
                    self.error = None;
                    self.table.end();
                }
                Err(error) => self.error = Some(unavailable(&error)),
            }
        }
        self.changes = self.counters.changes(self.interval_s);
        match self.selection.pid {
            Some(pid) => self.find_sockets_of(pid),
            None => Ok(()),
        }
    }

    /// Marks the new connections that the process has open.
    fn find_sockets_of(&mut self, pid: u32) -> Result<(), WatchError> {
        // A connection that has not been accepted yet has no inode.
        let is_new = |track: &Track| track.wanted.is_none() && track.inode != 0;
        if !self.table.all().any(|(_, track)| is_new(track)) {
            return match self.proc.join(pid.to_string()).exists() {
                true => Ok(()),
                false => Err(WatchError::NoProcess(pid)),
            };
        }
        let mut open = HashSet::new();
        owners::sockets_of(&self.proc, pid, |inode| {
            open.insert(inode);
        })
        .map_err(|error| access_error(pid, &error))?;
        for track in self.table.all_mut().filter(|track| is_new(track)) {
            track.wanted = Some(open.contains(&track.inode));
        }
        Ok(())
    }

    /// The result of the last poll: the first `top` connections in the selected order.
    #[must_use]
    pub fn report(&mut self, top: usize) -> WatchReport {
        let mut all: Vec<(u64, &Track)> = self.table.matching(&self.selection).collect();
        if !self.selection.text.is_empty() {
            let (owners, selection) = (&mut self.owners, &self.selection);
            let selected_program = selection.pid.map(|pid| owners::name_of(&self.proc, pid));
            if selected_program.is_none() {
                owners.resolve(all.iter().map(|(_, track)| track.inode));
            }
            all.retain(|(_, track)| {
                let owner = owners.of(track.inode).map(|(_, name)| name);
                let program = selected_program.as_deref().or(owner).unwrap_or_default();
                selection.matches_text(|| format!("{} {}", track.local, track.remote), program)
            });
        }
        let matching = all.len();
        let (mut busy, mut sends, mut receives) = (0, 0, 0u64);
        for (_, track) in all.iter().filter(|(_, track)| track.is_active()) {
            busy += 1;
            if let Some((sent, received)) = track.rates() {
                sends += sent.bps();
                receives += received.bps();
            }
        }
        let shown = table::first(all, self.sort, top);
        if self.selection.pid.is_none() {
            self.owners.resolve(shown.iter().map(|(_, track)| track.inode));
        }
        let connections: Vec<WatchedConnection> =
            shown.iter().map(|(cookie, track)| self.view(*cookie, track)).collect();
        let unnamed = connections.iter().any(|one| one.who.pid.is_none());
        WatchReport {
            schema: WATCH_SCHEMA.to_owned(),
            t_s: self.t_s,
            interval_s: self.interval_s,
            sockets: self.table.len(),
            matching,
            busy,
            sends_bps: BitRate::from_bps(sends),
            receives_bps: BitRate::from_bps(receives),
            connections,
            counters: self.changes.clone(),
            notes: self.notes(unnamed),
        }
    }

    /// One connection, by its id; `None` once it has ended.
    #[must_use]
    pub fn connection(&self, id: &str) -> Option<WatchedConnection> {
        let cookie = cookie(id)?;
        self.table.get(cookie).map(|track| self.view(cookie, track))
    }

    /// Whether the connection, by its id, was there at the last poll.
    pub(crate) fn is_running(&self, id: &str) -> bool {
        cookie(id).is_some_and(|cookie| self.table.get(cookie).is_some())
    }

    /// Keeps a longer history of this connection, and of no other.
    pub fn follow(&mut self, id: Option<&str>) {
        for track in self.table.all_mut() {
            track.followed = false;
        }
        if let Some(track) = id.and_then(cookie).and_then(|cookie| self.table.get_mut(cookie)) {
            track.followed = true;
            if track.history.is_empty() {
                track.history.extend(track.before);
                track.history.push_back(track.now);
            }
        }
    }

    /// The kept samples of a connection, oldest first.
    #[must_use]
    pub fn history(&self, id: &str) -> Vec<ConnectionSample> {
        let track = cookie(id).and_then(|cookie| self.table.get(cookie));
        track.map(|track| track.history.iter().copied().collect()).unwrap_or_default()
    }

    /// The connections that carry payload: each with its latest sample and the one
    /// before, if there is one.
    pub(crate) fn active(
        &mut self,
    ) -> Vec<(ConnectionId, Option<ConnectionSample>, ConnectionSample)> {
        let selection = &self.selection;
        let owners = &mut self.owners;
        let inodes = self.table.matching(selection).filter(|(_, track)| !track.history.is_empty());
        if selection.pid.is_none() {
            owners.resolve(inodes.map(|(_, track)| track.inode));
        }
        let tracks = self.table.matching(selection).filter(|(_, track)| !track.history.is_empty());
        tracks.map(|(cookie, track)| (self.who(cookie, track), track.before, track.now)).collect()
    }

    fn who(&self, cookie: u64, track: &Track) -> ConnectionId {
        let owner = match self.selection.pid {
            Some(pid) => Some((pid, owners::name_of(&self.proc, pid))),
            None => self.owners.of(track.inode).map(|(pid, name)| (pid, name.to_owned())),
        };
        let (pid, program) = owner.unzip();
        ConnectionId {
            id: format!("{cookie:x}"),
            local: track.local.to_string(),
            remote: track.remote.to_string(),
            pid,
            program,
            uid: track.uid,
            congestion: track.congestion.as_deref().map(str::to_owned),
        }
    }

    fn view(&self, cookie: u64, track: &Track) -> WatchedConnection {
        let who = self.who(cookie, track);
        let sent = &track.now.sent;
        let (sends_bps, receives_bps) = track.rates().unzip();
        let payload = track.history.front().map_or(0, |first| {
            let (sent, received) = track::payload(first, &track.now);
            sent.max(received)
        });
        let transfer = (payload >= MIN_DIAGNOSED_BYTES && track.is_active())
            .then(|| transfer(&who, &track.history, None))
            .flatten();
        let ms = |us: u32| f64::from(us) / 1e3;
        WatchedConnection {
            state: track.state_name().to_owned(),
            sends_bps,
            receives_bps,
            rtt_ms: (sent.rtt_us > 0).then(|| ms(sent.rtt_us)),
            min_rtt_ms: sent.min_rtt_us.map(ms),
            cwnd_bytes: sent.cwnd_bytes,
            in_flight_bytes: sent.in_flight_bytes,
            unsent_bytes: sent.unsent_bytes,
            unread_bytes: track.now.unread_bytes,
            peer_window_bytes: sent.peer_window_bytes,
            own_window_bytes: track.now.received.window_bytes,
            retransmits: track.retransmits(),
            retransmits_total: sent.retransmits,
            shares: track.shares(),
            bbr: track.bbr.map(|bbr| BbrView {
                bandwidth_bps: BitRate::from_bps(bbr.bandwidth.saturating_mul(8)),
                min_rtt_ms: ms(bbr.min_rtt_us),
                pacing_gain: bbr.pacing_gain,
                cwnd_gain: bbr.cwnd_gain,
            }),
            idle_s: self.t_s - track.last_active_s,
            limit: transfer.as_ref().and_then(|transfer| transfer.finding.limit),
            why: transfer.map(|transfer| transfer.finding.sentence),
            who,
        }
    }

    fn notes(&self, unnamed: bool) -> Vec<String> {
        let mut notes: Vec<String> = self.error.iter().cloned().collect();
        if self.lacks_timers {
            notes.push(
                "TCP_INFO has no sender timers: limits and some values need Linux 4.10".to_owned(),
            );
        }
        if unnamed && self.owners.were_denied() {
            notes.push("programs of other users are not shown; run as root to see them".to_owned());
        }
        notes
    }
}

fn cookie(id: &str) -> Option<u64> {
    u64::from_str_radix(id, 16).ok()
}

/// Why socket diagnosis failed, and what to do.
fn unavailable(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; try: modprobe tcp_diag",
        io::ErrorKind::PermissionDenied => "; a seccomp filter forbids it",
        _ => "; CONFIG_INET_TCP_DIAG is missing, or access is forbidden",
    };
    format!("cannot list connections: {error}{remedy}")
}

fn access_error(pid: u32, error: &io::Error) -> WatchError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => WatchError::Forbidden(pid),
        _ => WatchError::NoProcess(pid),
    }
}

fn check_access(proc: &Path, pid: u32) -> Result<(), WatchError> {
    owners::sockets_of(proc, pid, |_| {}).map_err(|error| access_error(pid, &error))?;
    match identity::network_namespace_of(pid) {
        Some(there) if identity::network_namespace().is_some_and(|here| here != there) => {
            Err(WatchError::Elsewhere(pid))
        }
        _ => Ok(()),
    }
}
