//! Comparison of sequence numbers, modulo 2^32 (RFC 9293, section 3.4).

/// Whether `a` comes after `b`.
#[inline]
pub(crate) fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// Whether `a` comes before `b`.
#[inline]
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Whether `a` is `b` or comes before it.
#[inline]
pub(crate) fn up_to(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 <= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_survives_the_wrap() {
        assert!(after(5, u32::MAX - 5) && before(u32::MAX - 5, 5));
        assert!(!after(5, 5) && !before(5, 5) && up_to(5, 5));
        assert!(up_to(u32::MAX, 0) && !up_to(0, u32::MAX));
    }
}
