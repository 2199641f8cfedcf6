//! The evidence shows no limit.

use crate::causes::{Cause, Observed};
use crate::phrases;
use record::Limit;

pub(super) struct Unknown;

impl Cause for Unknown {
    fn limit(&self) -> Limit {
        Limit::Unknown
    }

    fn noun(&self) -> &'static str {
        "another cause"
    }

    fn sentence(&self, o: &Observed<'_>) -> String {
        if let Some(line) = phrases::line(o.m, o.e) {
            return format!("Cannot identify the limit from the samples alone. {line}");
        }
        format!(
            "Cannot identify the limit at {}: no window, buffer, application, CPU, queue or loss \
             stands out; check the load on both hosts and run a longer test (-t).",
            o.e.goodput
        )
    }

    fn one_line(&self, _: &Observed<'_>) -> String {
        "unknown limit: no window, buffer, application, queue or loss stands out".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::Unknown;
    use crate::{causes::Cause, example::Example};

    #[test]
    fn nothing_is_predicted_or_recommended() {
        let example = Example::new(50.0, 20.0).on_path(100);
        assert_eq!(Unknown.prediction(&example.observed()), None);
        assert!(example.remedies(&Unknown).is_empty());
    }
}
