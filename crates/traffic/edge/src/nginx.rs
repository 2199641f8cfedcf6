//! nginx as a child of this process, in a private directory that is removed with it.

use crate::access_log::MAX_LINE;
use crate::configuration::{CacheDirectory, EdgeConfig, Output, configuration};
use crate::stub_status::Connections;
use crate::totals::Totals;
use host::clock;
use host::directory::{Directory, Trust};
use host::identity;
use host::lock::lock;
use host::process_group::ProcessGroup;
use std::fs::Permissions;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;

/// How to get nginx.
pub const INSTALL: &str = "install it with its modules slice and stub_status (Debian, Ubuntu: apt \
    install nginx-light; Fedora: dnf install nginx; Alpine: apk add nginx), and stop the service \
    that some packages start";

/// Time limit of checking a configuration: nginx resolves the origin's name.
const CHECK: Duration = Duration::from_secs(30);
/// Time limit until it listens. nginx tries an address that is in use five times in 2.5 s.
const START: Duration = Duration::from_secs(15);
/// Time to end after SIGTERM.
const END: Duration = Duration::from_secs(5);
/// Interval of looking whether it listens.
const POLL: Duration = Duration::from_millis(20);
/// Messages that wait to be taken; further ones are discarded.
const MAX_MESSAGES: usize = 64;
/// Names in the private directory.
const CONFIGURATION: &str = "edge.conf";
const STATUS_SOCKET: &str = "status.sock";
/// What others need of a directory to pass through it.
const PASSABLE: u32 = 0o001;

/// Why there is no edge.
#[derive(Debug, thiserror::Error)]
pub enum EdgeError {
    /// nginx is not installed.
    #[error("nginx is not installed: {INSTALL}")]
    Missing,
    /// The private directory, or that of the cache.
    #[error("cannot create the directory of nginx: {0}")]
    Directory(io::Error),
    /// nginx refuses its configuration. Its words are not printable as they are.
    #[error("nginx refuses its configuration: {0}")]
    Configuration(String),
    /// nginx cannot be started, or has ended. Its words are not printable as they are.
    #[error("nginx {0}")]
    Ended(String),
}

/// nginx's program: of `PATH`, or where distributions install it.
#[must_use]
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(PathBuf::from);
    let candidates = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let programs = candidates.chain(system).map(|folder| folder.join("nginx"));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    programs.into_iter().find(is_program)
}

/// A running nginx. Its thread must not end before it.
#[derive(Debug)]
pub struct Nginx {
    group: ProcessGroup,
    totals: Arc<Mutex<Totals>>,
    messages: Receiver<String>,
    readers: Vec<JoinHandle<()>>,
    status_socket: PathBuf,
    /// Removed last.
    _directory: TempDir,
}

impl Nginx {
    /// Writes the configuration, has nginx check it, starts nginx and waits until it listens.
    ///
    /// # Errors
    /// [`EdgeError`].
    pub fn start(config: &EdgeConfig) -> Result<Self, EdgeError> {
        let program = program().ok_or(EdgeError::Missing)?;
        let directory = private_directory(config).map_err(EdgeError::Directory)?;
        // Symbolic links, as /tmp may be one.
        let path = directory.path().canonicalize().map_err(EdgeError::Directory)?;
        Directory::open(&path, Trust::Owner)
            .and_then(|private| {
                let text = configuration(config, Output::Streams);
                private.store(CONFIGURATION, 0o600, text.as_bytes())
            })
            .map_err(EdgeError::Directory)?;
        check(&program, &path)?;
        let mut command = command(&program, &path);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let failed = |error: io::Error| EdgeError::Ended(format!("cannot be started: {error}"));
        let (group, mut child) = ProcessGroup::start(&mut command).map_err(failed)?;
        let totals = Arc::<Mutex<Totals>>::default();
        let (sender, messages) = sync_channel(MAX_MESSAGES);
        let mut readers = Vec::new();
        let (out, err) = (child.stdout.take(), child.stderr.take());
        if let Some(out) = out {
            let totals = Arc::clone(&totals);
            readers.push(reader(out, move |line| lock(&totals).add(line)).map_err(failed)?);
        }
        if let Some(err) = err {
            readers.push(reader(err, move |line| send(&sender, line)).map_err(failed)?);
        }
        let status_socket = path.join(STATUS_SOCKET);
        let mut nginx =
            Nginx { group, totals, messages, readers, status_socket, _directory: directory };
        nginx.wait_until_listening()?;
        Ok(nginx)
    }

    fn wait_until_listening(&mut self) -> Result<(), EdgeError> {
        let give_up = clock::now() + START;
        loop {
            if self.connections().is_ok() {
                return Ok(());
            }
            if self.has_ended() {
                return Err(EdgeError::Ended(self.with_reason("ended at its start")));
            }
            if clock::now() > give_up {
                let text = format!("does not listen after {} s", START.as_secs());
                return Err(EdgeError::Ended(self.with_reason(&text)));
            }
            std::thread::sleep(POLL);
        }
    }

    /// What has happened, with the first error that it wrote about it.
    fn with_reason(&self, text: &str) -> String {
        let messages = std::iter::from_fn(|| self.messages.recv_timeout(POLL).ok());
        match first_error(messages) {
            Some(message) => format!("{text}: {message}"),
            None => text.to_owned(),
        }
    }

    /// Returns true once it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.group.poll(), Ok(None))
    }

    /// What it has served until now. A request is added when it ends.
    #[must_use]
    pub fn totals(&self) -> Totals {
        lock(&self.totals).clone()
    }

    /// Messages of its error log, which are not printable as they are.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        self.messages.try_iter()
    }

    /// The clients' connections.
    ///
    /// # Errors
    /// The system error.
    pub fn connections(&self) -> io::Result<Connections> {
        Connections::read(&self.status_socket)
    }

    /// Ends it, with its connections, and returns what it has served.
    ///
    /// # Errors
    /// The system error.
    pub fn stop(mut self) -> io::Result<Totals> {
        self.group.terminate(END)?;
        for reader in self.readers {
            // Its pipe has ended; the thread does not panic.
            let _ = reader.join();
        }
        let totals = lock(&self.totals).clone();
        Ok(totals)
    }
}

/// The directory of configuration, sockets, temporary files and, unless it is elsewhere, the cache.
/// nginx's workers have another user if this one is root, and must pass through it.
fn private_directory(config: &EdgeConfig) -> io::Result<TempDir> {
    if let CacheDirectory::At(path) = &config.cache {
        cache_directory(Path::new(path.as_str()))?;
    }
    let mode = if identity::is_root() { 0o711 } else { 0o700 };
    tempfile::Builder::new()
        .prefix("longhaul-edge-")
        .permissions(Permissions::from_mode(mode))
        .tempdir()
}

/// The directory in which nginx makes that of its cache. If this is root, nginx gives the latter to the
/// user of its workers, so that nobody else may replace a component of the path, and the workers must
/// pass through each.
fn cache_directory(path: &Path) -> io::Result<()> {
    if !identity::is_root() {
        return Directory::create(path, Trust::Owner).map(drop);
    }
    let parent = path.parent().filter(|parent| parent.is_dir());
    let parent = parent.ok_or_else(|| {
        io::Error::other(format!("{} has no directory to be made in", path.display()))
    })?;
    Directory::create(path, Trust::RootOnly)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o711))?;
    let is_closed = |path: &&Path| {
        !path.metadata().is_ok_and(|found| found.permissions().mode() & PASSABLE == PASSABLE)
    };
    match parent.ancestors().find(is_closed) {
        None => Ok(()),
        Some(closed) => {
            let closed = closed.display();
            Err(io::Error::other(format!(
                "nginx's workers cannot pass through {closed}; chmod o+x {closed}"
            )))
        }
    }
}

fn command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .args(["-p", "./", "-c", CONFIGURATION, "-e", "stderr"])
        .current_dir(directory)
        .stdin(Stdio::null());
    command
}

/// Has nginx check the configuration.
fn check(program: &Path, directory: &Path) -> Result<(), EdgeError> {
    let mut command = command(program, directory);
    command.args(["-t", "-q"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let failed = |error: io::Error| EdgeError::Ended(format!("cannot be started: {error}"));
    let (mut group, mut child) = ProcessGroup::start(&mut command).map_err(failed)?;
    let (sender, messages) = sync_channel(MAX_MESSAGES);
    let err = child.stderr.take();
    let reader = err.map(|err| reader(err, move |line| send(&sender, line)));
    let reader = reader.transpose().map_err(failed)?;
    match group.wait(CHECK, &|| false).map_err(failed)? {
        Some(end) if end.status.success() => return Ok(()),
        Some(_) => {}
        None => {
            let text = format!("the check takes more than {} s", CHECK.as_secs());
            return Err(EdgeError::Configuration(text));
        }
    }
    if let Some(reader) = reader {
        let _ = reader.join();
    }
    let first = first_error(messages.try_iter());
    Err(EdgeError::Configuration(first.unwrap_or_else(|| "without a reason".to_owned())))
}

/// The first error that nginx ends for; further ones are consequences.
fn first_error(mut messages: impl Iterator<Item = String>) -> Option<String> {
    messages.find(|line| line.contains("[emerg]"))
}

fn send(sender: &SyncSender<String>, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    if !line.trim().is_empty() {
        // A full channel loses it: nginx must not wait for a reader of its messages.
        let _ = sender.try_send(line.into_owned());
    }
}

/// Reads lines until the stream ends; of a longer one than [`MAX_LINE`], its beginning.
fn reader(
    mut stream: impl Read + Send + 'static,
    mut take: impl FnMut(&[u8]) + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("nginx log".to_owned()).spawn(move || {
        let mut buffer = [0; 16 << 10];
        let mut line = Vec::with_capacity(MAX_LINE + 1);
        loop {
            let length = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            };
            for byte in &buffer[..length] {
                match byte {
                    b'\n' => {
                        take(&line);
                        line.clear();
                    }
                    // One more than is read, so that it counts as too long.
                    _ if line.len() <= MAX_LINE => line.push(*byte),
                    _ => {}
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Temporary directories are below one that others can write to.
    #[test]
    fn root_takes_no_directory_that_others_can_replace() {
        let folder = tempfile::tempdir().unwrap();
        let made = cache_directory(&folder.path().canonicalize().unwrap().join("cache"));
        assert_eq!(made.is_err(), identity::is_root(), "{made:?}");
    }
}
