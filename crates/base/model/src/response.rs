//! Response functions: the mean congestion window that a control has under random loss.

use crate::loss::{cubic_region_window, mathis_constant};

/// HighSpeed TCP is Reno from this loss rate on (`Low_P`, RFC 3649, section 5).
const HIGHSPEED_LOW_P: f64 = 1.5 / (38.0 * 38.0);

/// Scalable TCP is Reno below this window (Kelly 2003, section 3.1).
const SCALABLE_LOW_WINDOW: f64 = 16.0;

/// A control whose paper has an equation for its mean window.
///
/// | control | window in packets, at a loss rate p | source |
/// |---|---|---|
/// | Reno | `sqrt(3/2)/sqrt(p)` | Mathis et al. 1997, equation 3 |
/// | CUBIC | the larger of `1.054 (RTT/p)^(3/4)` and Reno's | RFC 9438, section 5.1 |
/// | HighSpeed | `0.12/p^0.835`, above a loss of 0.001 Reno's | RFC 3649, section 5 |
/// | Scalable | `0.0749/p`, below 16 packets Reno's | Kelly 2003: its peak is 0.08/p |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseFunction {
    /// NewReno.
    Reno,
    /// CUBIC.
    Cubic,
    /// HighSpeed TCP.
    HighSpeed,
    /// Scalable TCP.
    Scalable,
}

impl ResponseFunction {
    /// That of a control by the kernel's name.
    #[must_use]
    pub fn by_name(control: &str) -> Option<Self> {
        match control {
            "reno" => Some(ResponseFunction::Reno),
            "cubic" => Some(ResponseFunction::Cubic),
            "highspeed" => Some(ResponseFunction::HighSpeed),
            "scalable" => Some(ResponseFunction::Scalable),
            _ => None,
        }
    }

    /// The mean window in packets, at an RTT in s; `None` unless the loss rate is within 0 to 1 and
    /// the RTT above 0.
    #[must_use]
    pub fn window(self, rtt_s: f64, loss: f64) -> Option<f64> {
        if !(loss > 0.0 && loss < 1.0 && rtt_s > 0.0 && rtt_s.is_finite()) {
            return None;
        }
        let reno = mathis_constant() / loss.sqrt();
        let scalable = 0.0749 / loss;
        Some(match self {
            ResponseFunction::Cubic => cubic_region_window(rtt_s, loss).max(reno),
            ResponseFunction::HighSpeed if loss < HIGHSPEED_LOW_P => 0.12 / loss.powf(0.835),
            ResponseFunction::Scalable if scalable >= SCALABLE_LOW_WINDOW => scalable,
            ResponseFunction::Reno | ResponseFunction::HighSpeed | ResponseFunction::Scalable => {
                reno
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_papers() {
        let window = |control, loss| ResponseFunction::by_name(control)?.window(0.1, loss);
        let near = |control, loss, packets: f64| {
            let window = window(control, loss).unwrap();
            assert!((window / packets - 1.0).abs() < 0.02, "{control} at {loss}: {window}");
        };
        near("reno", 1e-4, 122.5);
        // RFC 9438, table 1 (RTT of 100 ms): 187 000 packets at 1e-8, where Reno has 12 247.
        near("cubic", 1e-8, 187_000.0);
        near("cubic", 1e-2, 12.2);
        // RFC 3649, table 1, and Reno's window above a loss of 0.001.
        near("highspeed", 1e-7, 83_981.0);
        near("highspeed", 1e-2, 12.2);
        near("scalable", 1e-5, 7_490.0);
        assert_eq!(window("bbr", 1e-4), None);
        assert_eq!(window("reno", 0.0), None);
    }
}
