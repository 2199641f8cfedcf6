//! Response functions: the mean congestion window that a control has under random loss.

use crate::loss::{cubic_region_window, mathis_constant};

/// HighSpeed TCP is Reno from this loss rate on (`Low_P`, RFC 3649, section 5).
const HIGHSPEED_LOW_P: f64 = 1.5 / (38.0 * 38.0);

/// Scalable TCP is Reno below this window (Kelly 2003, section 3.1).
const SCALABLE_LOW_WINDOW: f64 = 16.0;

/// The mean window of a control in packets, by the equation of its paper, at a loss rate within 0 to
/// 1 and an RTT in s; `None` where the paper has no equation.
///
/// | control | window | source |
/// |---|---|---|
/// | `reno` | `sqrt(3/2)/sqrt(p)` | Mathis et al. 1997, equation 3 |
/// | `cubic` | the larger of `1.054 (RTT/p)^(3/4)` and Reno's | RFC 9438, section 5.1 |
/// | `highspeed` | `0.12/p^0.835`, above a loss of 0.001 Reno's | RFC 3649, section 5 |
/// | `scalable` | `0.0749/p`, below 16 packets Reno's | Kelly 2003: its peak is 0.08/p |
#[must_use]
pub fn response_window(control: &str, rtt_s: f64, loss: f64) -> Option<f64> {
    let valid = loss > 0.0 && loss < 1.0 && rtt_s > 0.0 && rtt_s.is_finite();
    if !valid {
        return None;
    }
    let reno = mathis_constant() / loss.sqrt();
    let scalable = 0.0749 / loss;
    match control {
        "reno" => Some(reno),
        "cubic" => Some(cubic_region_window(rtt_s, loss).max(reno)),
        "highspeed" if loss >= HIGHSPEED_LOW_P => Some(reno),
        "highspeed" => Some(0.12 / loss.powf(0.835)),
        "scalable" if scalable < SCALABLE_LOW_WINDOW => Some(reno),
        "scalable" => Some(scalable),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_the_papers() {
        let near = |control, loss, packets: f64| {
            let window = response_window(control, 0.1, loss).unwrap();
            assert!((window / packets - 1.0).abs() < 0.02, "{control} at {loss}: {window}");
        };
        near("reno", 1e-4, 122.5);
        // RFC 9438, table 1 (RTT of 100 ms): 187 000 packets at 1e-8, where Reno has 12 247.
        near("cubic", 1e-8, 187_000.0);
        near("cubic", 1e-2, 12.2);
        // RFC 3649, table 1: 83 981 packets... at 1e-7, and Reno's window above 0.001.
        near("highspeed", 1e-7, 83_981.0);
        near("highspeed", 1e-2, 12.2);
        near("scalable", 1e-5, 7_490.0);
        assert_eq!(response_window("bbr", 0.1, 1e-4), None);
        assert_eq!(response_window("reno", 0.1, 0.0), None);
    }
}
