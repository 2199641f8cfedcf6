//! The local calendar.

use std::ffi::CString;
use std::mem::MaybeUninit;

/// Longest formatted time, bytes.
const MAX_LEN: usize = 256;

/// Formats seconds since 1970-01-01 UTC as local time with strftime(3). Empty if
/// `form` contains a NUL or the result is longer than 255 bytes.
#[must_use]
pub fn local(unix_s: u64, form: &str) -> String {
    let Ok(form) = CString::new(form) else { return String::new() };
    let seconds = libc::time_t::try_from(unix_s).unwrap_or(0);
    let mut parts = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to our own values; localtime_r(3) fills the
    // second one or returns null.
    let known = unsafe { libc::localtime_r(&raw const seconds, parts.as_mut_ptr()) };
    if known.is_null() {
        return String::new();
    }
    let mut text = [0u8; MAX_LEN];
    // SAFETY: `parts` was filled in above, the form ends with a NUL, and no
    // more than the buffer's length is written.
    let length = unsafe {
        libc::strftime(text.as_mut_ptr().cast(), text.len(), form.as_ptr(), parts.as_ptr())
    };
    text.get(..length).map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn forms_are_those_of_strftime() {
        assert_eq!(local(1_795_265_080, "%s %% x "), "1795265080 % x ");
        // In no time zone does the year differ.
        assert_eq!(local(1_781_000_000, "%Y"), "2026");
        assert_eq!(local(0, ""), "");
        assert_eq!(local(0, "a\0b"), "");
        assert_eq!(local(0, &"x".repeat(300)), "");
        assert_eq!(local(0, &"x".repeat(255)).len(), 255);
    }
}
