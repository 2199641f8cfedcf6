//! Looking at a host's connections again and again.

use crate::counters::Counters;
use crate::owners::{self, Owners};
use crate::select::{Selection, Sort};
use crate::table::{self, Table};
use crate::track::{self, Track};
use crate::transfer::transfer;
use host::sock_diag::SockDiag;
use host::{clock, identity};
use record::{
    BbrView, ConnectionId, CounterChange, Seen, WATCH_SCHEMA, WatchReport, WatchedConnection,
};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::BitRate;

/// Payload from which a connection is worth a verdict, bytes over the looks kept.
const WORTH_A_WORD: u64 = 16 << 10;

/// Why nothing can be watched.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// There is no process of that number.
    #[error("there is no process {0}; ps -e lists them")]
    NoProcess(u32),
    /// Its files are not to be seen.
    #[error("the connections of process {0} are another user's; watch as that user, or as root")]
    Forbidden(u32),
    /// Its connections are elsewhere.
    #[error(
        "process {0} is in another network namespace; watch from there: nsenter -t {0} -n longhaul watch --pid {0}"
    )]
    Elsewhere(u32),
    /// Neither connections nor counters can be had.
    #[error("{0}, and this system tells no counters either; there is nothing to watch")]
    Nothing(String),
}

/// Connections of the calling thread's network namespace, watched.
pub struct Watcher {
    /// What is wanted.
    pub selection: Selection,
    /// What comes first.
    pub sort: Sort,
    proc: PathBuf,
    diag: Option<SockDiag>,
    /// Why there are no connections.
    trouble: Option<String>,
    table: Table,
    owners: Owners,
    counters: Counters,
    changes: Vec<CounterChange>,
    begun: Option<Instant>,
    t_s: f64,
    interval_s: f64,
    /// Whether the first look has shown an account without clocks.
    without_clocks: bool,
}

impl Watcher {
    /// Opens the ways to the kernel.
    ///
    /// # Errors
    /// [`WatchError`]. A kernel that does not tell of connections is none, as long
    /// as it has counters: reports say so in a note.
    pub fn open(selection: Selection, sort: Sort) -> Result<Self, WatchError> {
        let proc = PathBuf::from("/proc");
        if let Some(pid) = selection.pid {
            may_see(&proc, pid)?;
        }
        let (diag, trouble) = match SockDiag::open() {
            Ok(diag) => (Some(diag), None),
            Err(error) => (None, Some(silent(&error))),
        };
        let counters = Counters::new(Path::new("/proc/thread-self"));
        if let Some(trouble) = trouble.as_ref().filter(|_| !counters.are_told()) {
            return Err(WatchError::Nothing(trouble.clone()));
        }
        Ok(Watcher {
            selection,
            sort,
            owners: Owners::new(&proc),
            proc,
            diag,
            trouble,
            table: Table::default(),
            counters,
            changes: Vec::new(),
            begun: None,
            t_s: 0.0,
            interval_s: 0.0,
            without_clocks: false,
        })
    }

    /// Looks once more.
    ///
    /// # Errors
    /// [`WatchError::NoProcess`] where the process asked for has ended.
    pub fn look(&mut self) -> Result<(), WatchError> {
        let now = clock::now();
        let begun = *self.begun.get_or_insert(now);
        let t_s = now.duration_since(begun).as_secs_f64();
        (self.interval_s, self.t_s) = (t_s - self.t_s, t_s);
        self.table.begin(t_s);
        if let Some(diag) = &mut self.diag {
            let table = &mut self.table;
            let without_clocks = &mut self.without_clocks;
            let told = diag.connections(|connection| {
                *without_clocks |= connection.info.is_some_and(|info| info.busy_us.is_none());
                table.see(connection);
            });
            match told {
                Ok(()) => {
                    self.trouble = None;
                    self.table.end();
                }
                Err(error) => self.trouble = Some(silent(&error)),
            }
        }
        self.changes = self.counters.changes(self.interval_s);
        match self.selection.pid {
            Some(pid) => self.look_for_those_of(pid),
            None => Ok(()),
        }
    }

    /// Which of the new connections the process has open.
    fn look_for_those_of(&mut self, pid: u32) -> Result<(), WatchError> {
        // One that no program has accepted yet has no number.
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
        .map_err(|error| refused(pid, &error))?;
        for track in self.table.all_mut().filter(|track| is_new(track)) {
            track.wanted = Some(open.contains(&track.inode));
        }
        Ok(())
    }

    /// The last look, with the first `top` connections in the order asked for.
    #[must_use]
    pub fn report(&mut self, top: usize) -> WatchReport {
        let mut all: Vec<(u64, &Track)> = self.table.matching(&self.selection).collect();
        if !self.selection.text.is_empty() {
            let (owners, selection) = (&mut self.owners, &self.selection);
            let theirs = selection.pid.map(|pid| owners::name_of(&self.proc, pid));
            if theirs.is_none() {
                owners.look_for(all.iter().map(|(_, track)| track.inode));
            }
            all.retain(|(_, track)| {
                let owner = owners.of(track.inode).map(|(_, name)| name);
                let program = theirs.as_deref().or(owner).unwrap_or_default();
                selection.takes_text(|| format!("{} {}", track.local, track.remote), program)
            });
        }
        let matching = all.len();
        let (mut busy, mut sends, mut receives) = (0, 0, 0u64);
        for (_, track) in all.iter().filter(|(_, track)| track.has_moved()) {
            busy += 1;
            if let Some((sent, received)) = track.rates() {
                sends += sent.bps();
                receives += received.bps();
            }
        }
        let shown = table::first(all, self.sort, top);
        if self.selection.pid.is_none() {
            self.owners.look_for(shown.iter().map(|(_, track)| track.inode));
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

    /// One connection whatever the order, by its id; `None` once it has ended.
    #[must_use]
    pub fn one(&self, id: &str) -> Option<WatchedConnection> {
        let cookie = cookie(id)?;
        self.table.get(cookie).map(|track| self.view(cookie, track))
    }

    /// Keeps more looks at this connection than at others, and at none beside it.
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

    /// The looks kept of a connection, oldest first.
    #[must_use]
    pub fn history(&self, id: &str) -> Vec<Seen> {
        let track = cookie(id).and_then(|cookie| self.table.get(cookie));
        track.map(|track| track.history.iter().copied().collect()).unwrap_or_default()
    }

    /// The connections that carry payload, each with the looks since the last one
    /// told: the last, or at its first time the one before as well.
    pub(crate) fn carrying(&mut self) -> Vec<(ConnectionId, Option<Seen>, Seen)> {
        let selection = &self.selection;
        let owners = &mut self.owners;
        let inodes = self.table.matching(selection).filter(|(_, track)| !track.history.is_empty());
        if selection.pid.is_none() {
            owners.look_for(inodes.map(|(_, track)| track.inode));
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
        let carried = track.history.front().map_or(0, |first| {
            let (sent, received) = track::moved(first, &track.now);
            sent.max(received)
        });
        let transfer = (carried >= WORTH_A_WORD && track.has_moved())
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
            idle_s: self.t_s - track.moved_s,
            limit: transfer.as_ref().and_then(|transfer| transfer.finding.limit),
            why: transfer.map(|transfer| transfer.finding.sentence),
            who,
        }
    }

    fn notes(&self, unnamed: bool) -> Vec<String> {
        let mut notes: Vec<String> = self.trouble.iter().cloned().collect();
        if self.without_clocks {
            notes.push(
                "this kernel's TCP_INFO is short: limits and some figures need Linux 4.10"
                    .to_owned(),
            );
        }
        if unnamed && self.owners.were_denied() {
            notes.push("other users' programs are not named; run as root to see them".to_owned());
        }
        notes
    }
}

fn cookie(id: &str) -> Option<u64> {
    u64::from_str_radix(id, 16).ok()
}

/// Why the kernel tells nothing of connections.
fn silent(error: &io::Error) -> String {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "; try: modprobe tcp_diag",
        io::ErrorKind::PermissionDenied => "; a filter of system calls forbids it",
        _ => "; its socket diagnosis (INET_TCP_DIAG) is missing or forbidden",
    };
    format!("the kernel tells nothing of connections ({error}){remedy}")
}

fn refused(pid: u32, error: &io::Error) -> WatchError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => WatchError::Forbidden(pid),
        _ => WatchError::NoProcess(pid),
    }
}

fn may_see(proc: &Path, pid: u32) -> Result<(), WatchError> {
    owners::sockets_of(proc, pid, |_| {}).map_err(|error| refused(pid, &error))?;
    match identity::network_namespace_of(pid) {
        Some(there) if identity::network_namespace().is_some_and(|here| here != there) => {
            Err(WatchError::Elsewhere(pid))
        }
        _ => Ok(()),
    }
}
