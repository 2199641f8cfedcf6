//! Times as a number of seconds in JSON: for `#[serde(with = "units::seconds")]`.

use serde::{Deserialize, Deserializer, Serializer, de::Error};
use std::time::Duration;

/// Writes a time as seconds.
///
/// # Errors
/// Of the serializer.
pub fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

/// Reads a time.
///
/// # Errors
/// A number that is negative, no number, or beyond what a [`Duration`] holds.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let seconds = f64::deserialize(deserializer)?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| D::Error::custom(format!("{seconds} s is not a time; give 0 or more")))
}

/// The same for times that may be missing: `#[serde(with = "units::seconds::option")]`.
pub mod option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
    use std::time::Duration;

    /// Writes a time as seconds, or nothing.
    ///
    /// # Errors
    /// Of the serializer.
    pub fn serialize<S: Serializer>(
        time: &Option<Duration>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs_f64()).serialize(serializer)
    }

    /// Reads a time, or nothing.
    ///
    /// # Errors
    /// A number that is negative, no number, or beyond what a [`Duration`] holds.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let seconds: Option<f64> = Option::deserialize(deserializer)?;
        let time = |seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|_| D::Error::custom(format!("{seconds} s is not a time; give 0 or more")))
        };
        seconds.map(time).transpose()
    }
}
