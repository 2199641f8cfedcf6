//! Splitting `2.5gbit` into its exact decimal number and its unit.

/// A decimal number kept exact: `digits / 10^places`.
///
/// Floating point would turn `0.1 %` into something else; a quantity is read
/// as the digits that were written.
pub(crate) struct Decimal {
    digits: u128,
    places: u32,
}

pub(crate) enum NumberError {
    Missing,
    Negative,
    TooLong,
}

impl NumberError {
    pub(crate) fn explain(&self, example: &str) -> String {
        match self {
            NumberError::Missing => format!("it begins with a number, as in {example}"),
            NumberError::Negative => format!("it cannot be negative; write it as in {example}"),
            NumberError::TooLong => format!("it has too many digits; write it as in {example}"),
        }
    }
}

impl Decimal {
    /// The number times `scale`, rounded to nearest; `None` past `u64`.
    pub(crate) fn times(&self, scale: u64) -> Option<u64> {
        let divisor = 10u128.checked_pow(self.places)?;
        let scaled = self.digits.checked_mul(u128::from(scale))?;
        u64::try_from((scaled + divisor / 2) / divisor).ok()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits == 0
    }
}

/// `"2.5 gbit"` becomes 2.5 and `"gbit"`. Exponents are not accepted: nobody
/// writes a link as `1e8`, and `1e` would be ambiguous with a unit.
pub(crate) fn split(text: &str) -> Result<(Decimal, &str), NumberError> {
    let text = text.trim();
    if text.starts_with(['-', '\u{2212}']) {
        return Err(NumberError::Negative);
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
        return Err(NumberError::Missing);
    }
    // 20 + 12 digits times the largest scale (2^60) stays within u128.
    if whole.len() > 20 || fraction.len() > 12 || (whole.len() + fraction.len()) > 20 {
        return Err(NumberError::TooLong);
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| NumberError::Missing)?;
    let places = u32::try_from(fraction.len()).map_err(|_| NumberError::TooLong)?;
    Ok((Decimal { digits, places }, unit.trim()))
}

/// Three significant digits, no trailing zeros after the point: `2.16`, `94.1`, `100`.
pub(crate) fn three_digits(value: f64) -> String {
    let places = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    let text = format!("{value:.places$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
