//! [`Rtt`] as milliseconds in JSON: `#[serde(rename = "…_ms", with = "crate::millis")]`.

use serde::{Deserialize, Deserializer, Serializer};
use units::Rtt;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's `with` asks for a reference")]
pub(crate) fn serialize<S: Serializer>(rtt: &Rtt, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(rtt.millis_f64())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rtt, D::Error> {
    f64::deserialize(deserializer).map(rtt)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "`as` saturates; a negative time reads as zero"
)]
fn rtt(millis: f64) -> Rtt {
    Rtt::from_nanos((millis * 1e6).round() as u64)
}

pub(crate) mod option {
    //! The same for an optional RTT.

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use units::Rtt;

    #[expect(clippy::ref_option, reason = "serde's `with` asks for a reference")]
    pub(crate) fn serialize<S: Serializer>(
        rtt: &Option<Rtt>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        rtt.map(Rtt::millis_f64).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Rtt>, D::Error> {
        Ok(Option::<f64>::deserialize(deserializer)?.map(super::rtt))
    }
}
