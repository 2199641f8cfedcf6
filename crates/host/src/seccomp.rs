//! System calls that are refused from now on, as by the seccomp filter of a service manager or
//! of a container: for tests of what a program does without them.

use crate::sys;
use std::io;

/// Refuses getrandom(2) with EPERM to the calling thread and to what it executes.
///
/// # Errors
/// The system error; also on a kernel without seccomp(2).
pub fn refuse_random_numbers() -> io::Result<()> {
    let refused = u32::try_from(libc::SYS_getrandom).map_err(io::Error::other)?;
    let statement = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    // The number of the call is at the start of struct seccomp_data (linux/seccomp.h); loads,
    // comparisons and returns are those of classic BPF (linux/bpf_common.h).
    let mut filter = [
        statement(0x20, 0, 0, 0),
        statement(0x15, 0, 1, refused),
        statement(0x06, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        statement(0x06, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: plain numbers.
    sys::check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) })?;
    let mode = libc::SECCOMP_MODE_FILTER;
    // SAFETY: the program names four statements, which live across the call.
    sys::check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, mode, &raw const program) }).map(drop)
}
