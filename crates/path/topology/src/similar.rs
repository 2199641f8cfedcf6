//! Known names that resemble an unknown one.

use crate::toml_text::short;

/// Longest part of a name that is compared, in characters: the time grows with the length.
const MAX_COMPARED: usize = 40;

/// Up to three names that resemble `name`, best first; upper and lower case are alike.
pub(crate) fn similar<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let name = short(name, MAX_COMPARED).to_lowercase();
    let mut near: Vec<(f64, &str)> = names
        .filter(|known| !known.is_empty())
        .map(|known| {
            let lower = known.to_lowercase();
            let like = strsim::jaro_winkler(&name, &lower);
            let within = !name.is_empty() && lower.contains(&name);
            let close = within || strsim::osa_distance(&name, &lower) == 1;
            (if close { like.max(0.9) } else { like }, known)
        })
        .filter(|(like, _)| *like >= 0.8)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.truncate(3);
    near.into_iter().map(|(_, known)| known).collect()
}

/// `; did you mean 'window'?`, or nothing where no known name resembles `name`.
pub fn did_you_mean<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest =
        similar(name, known).first().map(|nearest| format!("; did you mean '{nearest}'?"));
    nearest.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn case_does_not_matter() {
        let known = || ["cubic", "bbr", "DSCP"].into_iter();
        assert_eq!(did_you_mean("CUBIC", known()), "; did you mean 'cubic'?");
        assert_eq!(did_you_mean("dscp", known()), "; did you mean 'DSCP'?");
        assert_eq!(did_you_mean("vivace", known()), "");
    }
}
