//! A compression ratio as a flag's value.

/// `3:1`, or `3`.
pub(crate) fn ratio(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix(":1").unwrap_or(text.trim());
    match number.parse::<f64>() {
        Ok(ratio) if (1.0..=1000.0).contains(&ratio) => Ok(ratio),
        _ => Err("give a ratio from 1:1 to 1000:1, as in 3:1".to_owned()),
    }
}
