//! Runs programs that are not trusted: with a fixed environment, without privileges unless
//! wanted, with limits, and with no process of them left afterwards.

use crate::netns::NetNs;
use crate::privileges::NOBODY;
use crate::program::{self, Program, Reaper};
use crate::sys;
use crate::{clock, sandbox, signals};
use rustix::fs::OFlags;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, fchown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use units::ByteCount;

/// Where programs are searched for, whatever `PATH` longhaul has.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Returns true if a program of that name would be found, or its path is one of a file.
#[must_use]
pub fn is_installed(program: &str) -> bool {
    let found = |path: &Path| path.is_file();
    match program.contains('/') {
        true => found(Path::new(program)),
        false => PATH.split(':').any(|folder| found(&Path::new(folder).join(program))),
    }
}

/// The most processes of that user, to end what forks without end.
const MAX_PROCESSES: libc::rlim_t = 512;

/// Directories of programs, in memory: a tmpfs that only this sandbox sees, and that ends
/// with it.
#[derive(Debug)]
pub struct Scratch {
    next: AtomicU64,
}

/// A directory of one program, removed when dropped.
#[derive(Debug)]
pub struct ScratchDirectory {
    path: PathBuf,
    /// Whether its program keeps the caller's privileges.
    privileged: bool,
    /// Whether it runs as nobody.
    nobody: bool,
}

/// What is in a file of such a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// Text.
    Text(String),
    /// That many zeros, of which none are stored.
    Zeros(ByteCount),
}

/// A program that was started, and what it printed.
#[derive(Debug)]
pub struct Confined {
    program: Program,
    out: Captured,
    err: Captured,
}

/// What a program printed to one of its streams, up to a limit.
#[derive(Debug)]
struct Captured {
    pipe: io::PipeReader,
    text: Vec<u8>,
    limit: usize,
}

/// How long a killed program may take to end.
const END: Duration = Duration::from_secs(1);

/// Where the directories are.
const MOUNT_POINT: &CStr = c"/dev/shm";

impl Scratch {
    /// Mounts the tmpfs, over this sandbox's /dev/shm. Once in a sandbox
    /// ([`crate::sandbox`]): elsewhere it would cover the machine's.
    ///
    /// # Errors
    /// The system error.
    pub fn mount(size: ByteCount) -> io::Result<Self> {
        let options = CString::new(format!("size={},mode=755,nr_inodes=1000", size.bytes()))
            .map_err(io::Error::other)?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        sandbox::mount_with(Some(c"tmpfs"), MOUNT_POINT, Some(c"tmpfs"), flags, Some(&options))?;
        Ok(Scratch { next: AtomicU64::new(0) })
    }

    /// A directory of the user that its program runs as, with files that may name it.
    ///
    /// # Errors
    /// The system error.
    pub fn directory(
        &self,
        privileged: bool,
        files: impl FnOnce(&Path) -> Vec<(String, Content)>,
    ) -> io::Result<ScratchDirectory> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let path =
            Path::new(OsStr::from_bytes(MOUNT_POINT.to_bytes())).join(format!("program-{number}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        let directory = ScratchDirectory { path, privileged, nobody: !privileged && can_drop() };
        for (name, content) in files(&directory.path) {
            directory.write(&name, &content)?;
        }
        // Only now can other programs of that user write to it.
        if directory.nobody {
            chown(&directory.path, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(directory)
    }
}

/// Whether programs can be run as another user: not in the user namespace of an ordinary
/// user, which has no other one, and whose privileges end at its sandbox.
fn can_drop() -> bool {
    sandbox::user() == 0
}

impl ScratchDirectory {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The text of a file that its programs write, of at most so many bytes.
    ///
    /// # Errors
    /// The system error; `FileTooLarge` if it has more.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<String> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path.join(name))?;
        let mut text = String::new();
        file.take(limit + 1).read_to_string(&mut text)?;
        if text.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(text)
    }

    fn write(&self, name: &str, content: &Content) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let path = self.path.join(name);
        let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
        match content {
            Content::Text(text) => file.write_all(text.as_bytes())?,
            Content::Zeros(length) => file.set_len(length.bytes())?,
        }
        if self.nobody { fchown(&file, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        // The sandbox's end removes what cannot be removed now.
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

impl Reaper {
    /// Starts `arguments` (the program first) in a network namespace, as the leader of a
    /// process group, in its directory, which is also its `HOME` and its `TMPDIR`. It has no input;
    /// of what it prints, `limit` bytes of each stream are kept.
    ///
    /// # Errors
    /// The system error if the program cannot be started.
    pub fn start_confined(
        &self,
        namespace: &NetNs,
        arguments: &[OsString],
        directory: &ScratchDirectory,
        limit: usize,
    ) -> io::Result<Confined> {
        let (out, out_writer) = io::pipe()?;
        let (err, err_writer) = io::pipe()?;
        let mut command = program::command(arguments)?;
        command
            .env_clear()
            .envs([("PATH", PATH), ("LANG", "C.UTF-8")])
            .env("HOME", directory.path())
            .env("TMPDIR", directory.path())
            .current_dir(directory.path())
            .stdin(Stdio::null())
            .stdout(out_writer)
            .stderr(err_writer);
        let handle = namespace.as_fd().as_raw_fd();
        let (keeps, drops) = (directory.privileged, directory.nobody);
        // SAFETY: between fork and exec only system calls are made, on plain numbers and
        // static strings. The descriptor is open in the child too.
        unsafe {
            command.pre_exec(move || {
                signals::unblock();
                program::enter_host(handle)?;
                // A session of its own has no terminal, and a group of its own.
                sys::check(libc::setsid())?;
                be_first_without_memory();
                if keeps {
                    return Ok(());
                }
                gain_nothing()?;
                if drops { become_nobody() } else { Ok(()) }
            });
        }
        let program = self.spawn(command)?;
        Ok(Confined { program, out: Captured::new(out, limit)?, err: Captured::new(err, limit)? })
    }
}

/// When memory runs out, the kernel ends this program and not longhaul. Shared memory and
/// message queues (System V, POSIX) end with it.
///
/// Makes system calls only, so it may be called between fork and exec.
fn be_first_without_memory() {
    // SAFETY: static strings and plain numbers. A kernel without either has none to limit.
    unsafe {
        let _ = libc::unshare(libc::CLONE_NEWIPC);
        let file =
            libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            let most = c"1000";
            let _ = libc::write(file, most.as_ptr().cast(), most.count_bytes());
            let _ = libc::close(file);
        }
    }
}

/// Gives up what exec could give: set-user-ID programs, capabilities of files, ambient ones,
/// and those that user 0 has in the namespace of an ordinary user.
///
/// Makes system calls only, so it may be called between fork and exec.
fn gain_nothing() -> io::Result<()> {
    /// linux/securebits.h: user 0 gains no capabilities by exec, for good.
    const SECBIT_NOROOT: libc::c_ulong = 0b11;
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain numbers, and a structure that lives across the call.
    unsafe {
        sys::check(libc::setrlimit(libc::RLIMIT_CORE, &raw const none))?;
        sys::check(libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))?;
        sys::check(libc::prctl(libc::PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0))?;
        sys::check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
    }
    Ok(())
}

/// Becomes a user without privileges, for good.
///
/// Makes system calls only, so it may be called between fork and exec.
fn become_nobody() -> io::Result<()> {
    let processes = libc::rlimit { rlim_cur: MAX_PROCESSES, rlim_max: MAX_PROCESSES };
    // SAFETY: plain numbers, and a structure that lives across the call.
    unsafe {
        sys::check(libc::setrlimit(libc::RLIMIT_NPROC, &raw const processes))?;
        sys::check(libc::setgroups(0, std::ptr::null()))?;
        sys::check(libc::setresgid(NOBODY, NOBODY, NOBODY))?;
        sys::check(libc::setresuid(NOBODY, NOBODY, NOBODY))?;
    }
    Ok(())
}

impl Confined {
    /// The program.
    #[must_use]
    pub const fn program(&self) -> &Program {
        &self.program
    }

    /// Takes what it has printed until now, which it waits for when the pipe is full. `false`:
    /// it printed more than its limit.
    ///
    /// # Errors
    /// The system error.
    pub fn collect(&mut self) -> io::Result<bool> {
        Ok(self.out.collect()? & self.err.collect()?)
    }

    /// What it printed to standard output; bytes that are no UTF-8 are replaced.
    #[must_use]
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&self.out.text).into_owned()
    }

    /// The last line that it printed to standard error, or else to standard output.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        let last = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
            line.map(|line| line.chars().take(200).collect::<String>())
        };
        last(&self.err.text).or_else(|| last(&self.out.text))
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        self.program.signal_group(libc::SIGKILL);
        // Its files are removed next.
        let _ = self.program.wait_at_most(END);
    }
}

impl Captured {
    fn new(pipe: io::PipeReader, limit: usize) -> io::Result<Self> {
        rustix::fs::fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        Ok(Captured { pipe, text: Vec::new(), limit })
    }

    fn collect(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 8192];
        loop {
            match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(true),
                Ok(length) if self.text.len() + length > self.limit => return Ok(false),
                Ok(length) => self.text.extend_from_slice(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Ends every process of the sandbox but the calling one, which is its process 1: whatever
/// group, session or namespace a program has moved to. `false`: some remain.
///
/// Does nothing outside of a sandbox.
#[must_use]
pub fn kill_all() -> bool {
    if std::process::id() != 1 {
        return true;
    }
    let give_up = clock::now() + END;
    loop {
        // SAFETY: plain numbers; -1 is every process of this PID namespace but process 1.
        let killed = unsafe { libc::kill(-1, libc::SIGKILL) };
        if killed == -1 {
            // There is none.
            return true;
        }
        if clock::now() > give_up {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
