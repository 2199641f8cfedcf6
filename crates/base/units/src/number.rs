//! Splitting `2.5gbit` into its exact decimal number and its unit.

/// A decimal number kept exact: `digits / 10^places`.
///
/// Floating point cannot represent `0.1 %` exactly; the written digits can.
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
            NumberError::Missing => format!("it must start with a number, as in {example}"),
            NumberError::Negative => format!("it cannot be negative; write it as in {example}"),
            NumberError::TooLong => format!("it has too many digits; write it as in {example}"),
        }
    }
}

impl Decimal {
    /// The number times `scale`, rounded to nearest; `None` on overflow of `u64`.
    pub(crate) fn times(&self, scale: u64) -> Option<u64> {
        let divisor = 10u128.checked_pow(self.places)?;
        let scaled = self.digits.checked_mul(u128::from(scale))?;
        u64::try_from((scaled + divisor / 2) / divisor).ok()
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits == 0
    }
}

/// `"2.5 gbit"` becomes 2.5 and `"gbit"`. Exponents are not accepted: `1e`
/// would be ambiguous with a unit.
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

/// A number with so many significant digits, without trailing zeros and never in
/// exponent notation: with three, 0.047, 2.16, 94.1, 100. Digits before the point are
/// all printed.
#[must_use]
pub fn significant(value: f64, digits: u8) -> String {
    let exponent = exponent(value);
    // 0 to 20 places: clamped before the conversion.
    let places = (f64::from(digits) - 1.0 - exponent).clamp(0.0, 20.0) as usize;
    let text = format!("{value:.places$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// The decimal exponent of a number: 2 for 100 to below 1000; 0 for zero and what is not finite.
fn exponent(value: f64) -> f64 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::significant;

    #[test]
    fn as_many_digits_as_asked() {
        for (number, digits, text) in [
            (0.0, 2, "0"),
            (0.047_02, 2, "0.047"),
            (0.011_75, 2, "0.012"),
            (1.25, 2, "1.2"),
            (12.4, 2, "12"),
            (100.0, 2, "100"),
            (999.6, 3, "1000"),
            (9.996, 3, "10"),
            (-0.5, 3, "-0.5"),
        ] {
            assert_eq!(significant(number, digits), text);
        }
    }
}
