//! A disk of a given rate: a file system of this process (FUSE, fuse(4)) with one endless file of
//! zeros. A read takes the time that a device of that rate takes for its bytes, one after the
//! other; whoever reads the file waits for it in read(2), as for any disk, behind the kernel's
//! page cache and its read-ahead.

mod message;

use crate::stop::StopFlag;
use crate::{clock, sandbox, sys, wait};
use message::{Answer, Request};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use units::{BitRate, ByteCount};

/// The device of the kernel's side of FUSE.
const DEVICE: &str = "/dev/fuse";

/// How often the end of the disk is noticed.
const POLL: Duration = Duration::from_millis(20);

/// The longest request of the kernel: it writes nothing.
const MAX_REQUEST: usize = 64 * 1024;

/// A mounted disk, unmounted when dropped.
#[derive(Debug)]
pub struct SlowDisk {
    file: PathBuf,
    mount_point: CString,
    stop: StopFlag,
    server: Option<JoinHandle<()>>,
}

impl SlowDisk {
    /// Mounts it on an empty directory. Once in a sandbox ([`crate::sandbox`]): the mount is seen
    /// there only, and ends with it.
    ///
    /// # Errors
    /// FUSE is not available, or the directory is not there.
    pub fn mount(directory: &Path, rate: BitRate) -> io::Result<Self> {
        let device = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(DEVICE)
            .map_err(|error| io::Error::new(error.kind(), format!("{DEVICE}: {error}")))?;
        let mount_point = CString::new(directory.as_os_str().as_bytes())?;
        let options = format!("fd={},rootmode=40000,user_id=0,group_id=0", device.as_raw_fd());
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_RDONLY;
        let options = CString::new(options)?;
        sandbox::mount_with(Some(c"disk"), &mount_point, Some(c"fuse"), flags, Some(&options))
            .map_err(|error| io::Error::new(error.kind(), format!("mounting FUSE: {error}")))?;
        let stop = StopFlag::new();
        let mut disk = SlowDisk {
            file: directory.join(message::FILE),
            mount_point,
            stop: stop.clone(),
            server: None,
        };
        let serve = move || Server { device, rate, free_at: clock::now(), stop }.run();
        disk.server = Some(thread::Builder::new().name("disk".to_owned()).spawn(serve)?);
        Ok(disk)
    }

    /// The only file.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.stop.raise();
        // SAFETY: a valid path.
        let _ = sys::check(unsafe { libc::umount2(self.mount_point.as_ptr(), libc::MNT_DETACH) });
        // The end of the thread closes the device: whoever still reads gets an error.
        if let Some(server) = self.server.take() {
            let _ = server.join();
        }
    }
}

/// What answers the kernel.
struct Server {
    device: File,
    rate: BitRate,
    /// When the device has read what was asked before.
    free_at: Instant,
    stop: StopFlag,
}

impl Server {
    /// Until the disk is unmounted.
    fn run(&mut self) {
        let mut buffer = vec![0; MAX_REQUEST];
        while !self.stop.is_raised() {
            if wait::ready(&self.device, false, POLL).is_err() {
                return;
            }
            let length = match (&self.device).read(&mut buffer) {
                Ok(length) => length,
                // Nothing there, or the request was withdrawn.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::NotFound
                    ) =>
                {
                    continue;
                }
                Err(_) => return,
            };
            let Some(request) = Request::parse(&buffer[..length]) else { return };
            let answer = request.answer();
            if let Answer::Zeros(bytes) = answer {
                self.transfer(bytes);
            }
            if let Some(reply) = request.reply(&answer)
                && (&self.device).write_all(&reply).is_err_and(|error| is_fatal(&error))
            {
                return;
            }
        }
    }

    /// Takes the time that the device needs.
    fn transfer(&mut self, bytes: u32) {
        let takes = self.rate.time_for(ByteCount::from_bytes(u64::from(bytes)));
        self.free_at = self.free_at.max(clock::now()) + takes;
        while !self.stop.is_raised() {
            let left = self.free_at.saturating_duration_since(clock::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(POLL));
        }
    }
}

/// A reply to a request that was withdrawn is refused.
fn is_fatal(error: &io::Error) -> bool {
    error.kind() != ErrorKind::NotFound
}
