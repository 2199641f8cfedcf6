//! System calls that are refused from now on, as by an older kernel, or by the seccomp filter of a
//! service manager or of a container: for tests of what a program does without them.

use crate::sys;
use libc::{c_long, sock_filter};
use std::io;

/// A system call to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    call: c_long,
    /// Arguments by index that it has where it is refused.
    arguments: &'static [(u32, i32)],
    errno: i32,
}

impl Refusal {
    const fn new(call: c_long, arguments: &'static [(u32, i32)], errno: i32) -> Self {
        Refusal { call, arguments, errno }
    }

    /// No random numbers.
    pub const RANDOM_NUMBERS: Self = Self::new(libc::SYS_getrandom, &[], libc::EPERM);
    /// Files below a directory (Linux 5.6): as an older kernel refuses them.
    pub const OPENAT2: Self = Self::new(libc::SYS_openat2, &[], libc::ENOSYS);
    /// The same as a container's filter that does not know the call.
    pub const OPENAT2_IN_CONTAINER: Self = Self::new(libc::SYS_openat2, &[], libc::EPERM);
    /// Namespaces, as Docker's default filter refuses them.
    pub const NAMESPACES: Self = Self::new(libc::SYS_unshare, &[], libc::EPERM);
    /// Waiting with nanoseconds (Linux 5.11).
    pub const EPOLL_PWAIT2: Self = Self::new(libc::SYS_epoll_pwait2, &[], libc::ENOSYS);
    /// Multipath TCP (Linux 5.6).
    pub const MPTCP: Self =
        Self::new(libc::SYS_socket, &[(2, libc::IPPROTO_MPTCP)], libc::EPROTONOSUPPORT);
    /// A congestion control by name, as where its module is missing.
    pub const CONGESTION_CONTROL: Self =
        Self::option(&[(1, libc::IPPROTO_TCP), (2, libc::TCP_CONGESTION)], libc::ENOENT);
    /// A limit of unsent data.
    pub const NOTSENT_LOWAT: Self =
        Self::option(&[(1, libc::IPPROTO_TCP), (2, libc::TCP_NOTSENT_LOWAT)], libc::ENOPROTOOPT);
    /// Segmentation of datagrams in the kernel (Linux 4.18), and their coalescing (Linux 5.0).
    pub const UDP_SEGMENT: Self =
        Self::option(&[(1, libc::SOL_UDP), (2, libc::UDP_SEGMENT)], libc::ENOPROTOOPT);
    /// See [`Refusal::UDP_SEGMENT`].
    pub const UDP_GRO: Self =
        Self::option(&[(1, libc::SOL_UDP), (2, libc::UDP_GRO)], libc::ENOPROTOOPT);
    /// Everything that `TCP_INFO` says.
    pub const TCP_INFO: Self = Self::new(
        libc::SYS_getsockopt,
        &[(1, libc::IPPROTO_TCP), (2, libc::TCP_INFO)],
        libc::ENOPROTOOPT,
    );

    const fn option(arguments: &'static [(u32, i32)], errno: i32) -> Self {
        Self::new(libc::SYS_setsockopt, arguments, errno)
    }

    /// Its statements. The offsets are those of struct seccomp_data (linux/seccomp.h), the lower
    /// half of an argument first; loads, comparisons and returns are classic BPF's
    /// (linux/bpf_common.h).
    fn statements(&self) -> impl Iterator<Item = sock_filter> {
        let statement = |code, jt, jf, k| sock_filter { code, jt, jf, k };
        let tests = self.arguments.iter().map(|(index, value)| (16 + 8 * index, *value));
        let call = i32::try_from(self.call).unwrap_or(-1);
        let tests: Vec<(u32, i32)> = [(0, call)].into_iter().chain(tests).collect();
        let errno = libc::SECCOMP_RET_ERRNO | self.errno.unsigned_abs();
        let left = tests.len();
        let tests = tests.into_iter().enumerate().flat_map(move |(number, (offset, value))| {
            // Past the remaining tests and the return.
            let skip = u8::try_from(2 * (left - number - 1) + 1).unwrap_or(u8::MAX);
            [statement(0x20, 0, 0, offset), statement(0x15, 0, skip, value.cast_unsigned())]
        });
        tests.chain([statement(0x06, 0, 0, errno)])
    }
}

/// Refuses system calls to the calling thread and to what it executes.
///
/// # Errors
/// The system error; also on a kernel without seccomp(2).
pub fn refuse(refusals: &[Refusal]) -> io::Result<()> {
    let allow = sock_filter { code: 0x06, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
    let mut filter: Vec<sock_filter> =
        refusals.iter().flat_map(Refusal::statements).chain([allow]).collect();
    let len = u16::try_from(filter.len()).map_err(io::Error::other)?;
    let program = libc::sock_fprog { len, filter: filter.as_mut_ptr() };
    // SAFETY: plain numbers.
    sys::check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the program names `len` statements, which live across the call.
    sys::check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) }).map(drop)
}
