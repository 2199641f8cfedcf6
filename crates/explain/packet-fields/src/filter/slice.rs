//! Slices: `[0:3]`, `[4-5]`, `[-2:]`, `[0:3,5]`.

use super::expression::Slice;

/// Most parts of a slice.
const MAX: usize = 16;

/// The slices between two brackets; `None` if they are none.
pub(super) fn slices(text: &str) -> Option<Vec<Slice>> {
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    let slices: Vec<Slice> = parts.map(slice).collect::<Option<_>>()?;
    (1..=MAX).contains(&slices.len()).then_some(slices)
}

/// An offset, which may be negative.
fn offset(text: &str) -> Option<i32> {
    let (digits, sign) = text.trim().strip_prefix('-').map_or((text.trim(), 1), |it| (it, -1));
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse::<u16>().ok().filter(|_| is_number).map(|number| sign * i32::from(number))
}

/// `[offset:length]`, `[from-to]`, `[offset]`, `[:length]`, `[offset:]`.
fn slice(text: &str) -> Option<Slice> {
    let positive = |text: &str| offset(text).and_then(|it| usize::try_from(it).ok());
    if let Some((from, length)) = text.split_once(':') {
        let from = if from.trim().is_empty() { 0 } else { offset(from)? };
        let length = if length.trim().is_empty() { None } else { Some(positive(length)?) };
        return Some(Slice { from, length }).filter(|slice| slice.length != Some(0));
    }
    // A sign is no range.
    let text = text.trim();
    if let Some(at) = text.get(1..).and_then(|rest| rest.find('-')) {
        let (from, to) = (offset(text.get(..at + 1)?)?, offset(text.get(at + 2..)?)?);
        let length = usize::try_from(to.checked_sub(from)?.checked_add(1)?).ok();
        let is_same_sign = (from < 0) == (to < 0);
        return length
            .filter(|it| *it > 0 && is_same_sign)
            .map(|it| Slice { from, length: Some(it) });
    }
    Some(Slice { from: offset(text)?, length: Some(1) })
}
