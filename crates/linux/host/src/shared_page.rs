//! A page of memory that two programs share: words of 64 bits, and bells that wake whoever
//! waits for them (futex(2)).
//!
//! A *bell* is a word whose lower half counts how often it was rung, and whose upper half is 1
//! while somebody sleeps until it rings, in the byte order of x86-64 and AArch64. Who rings
//! one makes a system call only if somebody sleeps.

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::FdFlags;
use rustix::thread::futex;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Words of a page.
pub const WORDS: usize = 512;
const BYTES: usize = WORDS * size_of::<u64>();

/// A page that another program can map too. Its size is sealed: nobody can cut it off below
/// who reads it.
#[derive(Debug)]
pub struct SharedPage {
    start: NonNull<AtomicU64>,
    file: OwnedFd,
}

// SAFETY: a mapping has no thread, and all access is atomic.
unsafe impl Send for SharedPage {}

impl SharedPage {
    /// A page of zeros.
    ///
    /// # Errors
    /// The system error, if memory or descriptors have run out.
    pub fn new() -> io::Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create(c"shared-page", flags)?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        SharedPage::map(file)
    }

    /// Maps the page that is the content of `file`.
    fn map(file: OwnedFd) -> io::Result<Self> {
        // SAFETY: a fresh mapping touches nothing that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast());
        let start = start.ok_or_else(|| io::Error::other("memory at address 0"))?;
        Ok(SharedPage { start, file })
    }

    /// Lets the program that `command` starts inherit the page's descriptor. Returns its
    /// number there.
    ///
    /// # Errors
    /// The system error, if descriptors have run out.
    pub fn inherit(&self, command: &mut Command) -> io::Result<RawFd> {
        // The command owns one of its own, so the number stays the same until it starts.
        let file = self.file.try_clone()?;
        let number = file.as_raw_fd();
        // SAFETY: between fork and exec one system call is made, on a plain number.
        unsafe {
            command.pre_exec(move || Ok(rustix::io::fcntl_setfd(&file, FdFlags::empty())?));
        }
        Ok(number)
    }

    /// Reads `N` words from word `AT` on.
    #[must_use]
    pub fn load<const AT: usize, const N: usize>(&self) -> [u64; N] {
        self.words::<AT, N>().each_ref().map(|word| word.load(Ordering::Relaxed))
    }

    /// Writes `N` words from word `AT` on.
    pub fn store<const AT: usize, const N: usize>(&self, values: [u64; N]) {
        for (word, value) in self.words::<AT, N>().iter().zip(values) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Rings the bell at word `AT`: words written before are visible to whoever hears it.
    pub fn ring<const AT: usize>(&self) {
        let [count, sleeps] = self.bell::<AT>();
        count.fetch_add(1, Ordering::SeqCst);
        if sleeps.load(Ordering::SeqCst) != 0 {
            // Nothing else can go wrong than that nobody sleeps any more.
            let _ = futex::wake(count, futex::Flags::empty(), 1);
        }
    }

    /// Sleeps until the bell at word `AT` was rung another number of times than `heard`, at most
    /// for `limit`. Returns how often it was rung, modulo 2^32.
    #[must_use]
    pub fn sleep<const AT: usize>(&self, heard: u32, limit: Duration) -> u32 {
        let [count, sleeps] = self.bell::<AT>();
        sleeps.store(1, Ordering::SeqCst);
        if count.load(Ordering::SeqCst) == heard {
            let limit: Option<futex::Timespec> = limit.try_into().ok();
            // It may also return early, by a signal; who waits looks again.
            let _ = futex::wait(count, futex::Flags::empty(), heard, limit.as_ref());
        }
        sleeps.store(0, Ordering::SeqCst);
        count.load(Ordering::Acquire)
    }

    fn words<const AT: usize, const N: usize>(&self) -> &[AtomicU64; N] {
        const { assert!(AT + N <= WORDS, "beyond the page") };
        // SAFETY: within the mapping, which lives as long as `self`; a page is aligned, and any
        // bits are a value, whoever writes them.
        unsafe { self.start.add(AT).cast().as_ref() }
    }

    /// How often a bell was rung, and whether somebody sleeps until it is again.
    fn bell<const AT: usize>(&self) -> &[AtomicU32; 2] {
        const { assert!(AT < WORDS, "beyond the page") };
        // SAFETY: as above.
        unsafe { self.start.add(AT).cast().as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped; nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    const WAIT: Duration = Duration::from_secs(30);

    #[test]
    fn words_are_where_they_were_written() {
        let page = SharedPage::new().unwrap();
        page.store::<3, 2>([7, u64::MAX]);
        page.store::<511, 1>([9]);
        assert_eq!(page.load::<2, 4>(), [0, 7, u64::MAX, 0]);
        assert_eq!(page.load::<511, 1>(), [9]);
    }

    #[test]
    fn a_bell_wakes_a_sleeper_and_is_heard_late() {
        let page = SharedPage::new().unwrap();
        assert_eq!(page.sleep::<8>(0, Duration::from_millis(1)), 0, "nobody rang");
        page.ring::<8>();
        assert_eq!(page.sleep::<8>(0, WAIT), 1, "rung before");
        let (sender, receiver) = mpsc::channel();
        let sleeper = std::thread::spawn(move || {
            let page: SharedPage = receiver.recv_timeout(WAIT).unwrap();
            let (mut heard, mut sum) = (1, 0);
            while heard < 1_001 {
                let now = page.sleep::<8>(heard, WAIT);
                if now != heard {
                    sum += page.load::<20, 1>()[0];
                    heard = now;
                    page.ring::<9>();
                }
            }
            sum
        });
        let same = SharedPage::map(page.file.try_clone().unwrap()).unwrap();
        sender.send(same).unwrap();
        for step in 0..1_000 {
            page.store::<20, 1>([u64::from(step)]);
            page.ring::<8>();
            let mut answered = step;
            while answered == step {
                answered = page.sleep::<9>(step, WAIT);
            }
            assert_eq!(answered, step + 1);
        }
        assert_eq!(sleeper.join().unwrap(), 499_500);
    }

    #[test]
    fn its_size_is_sealed_and_a_program_inherits_it() {
        let page = SharedPage::new().unwrap();
        assert!(rustix::fs::ftruncate(&page.file, 0).is_err());
        let mut command = Command::new("sh");
        let number = page.inherit(&mut command).unwrap();
        let script = format!("printf 12345678 1<>/proc/self/fd/{number}");
        assert!(command.args(["-c", &script]).status().unwrap().success());
        assert_eq!(page.load::<0, 1>()[0].to_le_bytes(), *b"12345678");
        assert!(Command::new("sh").args(["-c", &script]).status().is_ok_and(|s| !s.success()));
    }
}
