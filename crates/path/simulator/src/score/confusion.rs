//! The confusion matrix, and how often each family is found right.

use super::{Boundaries, LASTING_S, Scored};
use record::Limit;
use std::collections::BTreeMap;
use std::fmt;

/// True limits against findings.
#[derive(Debug, Default)]
pub struct Confusion {
    counts: BTreeMap<(Limit, Limit), u32>,
    families: BTreeMap<&'static str, Counts>,
    /// By what a test was asked for: control, streams, direction, buffers.
    requests: BTreeMap<(usize, &'static str), Counts>,
    all: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    runs: u32,
    right: u32,
    surely_wrong: u32,
    unknown: u32,
}

impl Counts {
    fn add(&mut self, one: &Scored) {
        self.runs += 1;
        self.right += u32::from(one.is_right());
        self.surely_wrong += u32::from(!one.is_right() && one.sure);
        self.unknown += u32::from(one.found == Limit::Unknown);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u32| f64::from(part) * 100.0 / f64::from(self.runs.max(1));
        write!(
            f,
            "{:5} runs: right {:5.1} %, sure and wrong {:4.1} %, unknown {:4.1} %",
            self.runs,
            percent(self.right),
            percent(self.surely_wrong),
            percent(self.unknown)
        )
    }
}

impl Confusion {
    /// Of findings beside their truth.
    #[must_use]
    pub fn of(scored: &[Scored]) -> Self {
        let mut table = Confusion::default();
        for one in scored {
            *table.counts.entry((one.truth, one.found)).or_default() += 1;
            table.families.entry(one.family).or_default().add(one);
            table.all.add(one);
            let requests = [
                one.congestion,
                if one.several { "several streams" } else { "one stream" },
                if one.reverse { "reverse" } else { "forward" },
                if one.default_buffers { "default buffers" } else { "ample or set buffers" },
            ];
            for request in requests.into_iter().enumerate() {
                table.requests.entry(request).or_default().add(one);
            }
        }
        table
    }

    fn count(&self, truth: Limit, found: Limit) -> u32 {
        self.counts.get(&(truth, found)).copied().unwrap_or_default()
    }
}

impl fmt::Display for Confusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns: Vec<Limit> = Limit::ALL
            .into_iter()
            .filter(|found| Limit::ALL.iter().any(|truth| self.count(*truth, *found) > 0))
            .collect();
        // Columns are numbered, or the matrix would not fit a terminal.
        write!(f, "{:<24}", "true \\ found")?;
        for found in &columns {
            write!(f, "{:>5}", number(*found))?;
        }
        writeln!(f)?;
        for truth in Limit::ALL {
            if Limit::ALL.iter().all(|found| self.count(truth, *found) == 0) {
                continue;
            }
            write!(f, "{:>2} {:<21}", number(truth), truth.name())?;
            for found in &columns {
                match self.count(truth, *found) {
                    0 => write!(f, "{:>5}", ".")?,
                    count => write!(f, "{count:>5}")?,
                }
            }
            writeln!(f)?;
        }
        writeln!(f)?;
        for (family, tally) in &self.families {
            writeln!(f, "{family:<20} {tally}")?;
        }
        writeln!(f, "{:<20} {}\n", "all", self.all)?;
        for ((_, request), tally) in &self.requests {
            writeln!(f, "{request:<20} {tally}")?;
        }
        write!(f, "{}", self.named_unseen())
    }
}

impl Confusion {
    /// The numbers of limits that were found but never true, with their names.
    fn named_unseen(&self) -> String {
        let unseen = |found: &Limit| {
            let is_found = Limit::ALL.iter().any(|truth| self.count(*truth, *found) > 0);
            is_found && Limit::ALL.iter().all(|other| self.count(*found, *other) == 0)
        };
        let lines = Limit::ALL.into_iter().filter(unseen);
        lines.map(|found| format!("{:>2} {}\n", number(found), found.name())).collect()
    }
}

fn number(limit: Limit) -> usize {
    Limit::ALL.iter().position(|other| *other == limit).unwrap_or_default() + 1
}

/// How often each family has which true limit, and how often each limit is true.
#[must_use]
pub fn labels(scored: &[Scored]) -> String {
    let mut families: BTreeMap<&str, BTreeMap<Limit, u32>> = BTreeMap::new();
    let mut limits: BTreeMap<Limit, u32> = BTreeMap::new();
    for one in scored {
        *families.entry(one.family).or_default().entry(one.truth).or_default() += 1;
        *limits.entry(one.truth).or_default() += 1;
    }
    let list = |counts: &BTreeMap<Limit, u32>| {
        let mut counts: Vec<(Limit, u32)> = counts.iter().map(|(l, n)| (*l, *n)).collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let words = counts.iter().map(|(limit, count)| format!("{} {count}", limit.name()));
        words.collect::<Vec<_>>().join(", ")
    };
    let mut text = String::from("True limits by family:\n");
    for (family, counts) in &families {
        text += &format!("{family:<18} {}\n", list(counts));
    }
    let all = scored.len().max(1) as f64;
    text += "True limits, % of the runs:\n";
    for limit in Limit::ALL {
        let count = limits.get(&limit).copied().unwrap_or_default();
        if count > 0 {
            text += &format!("{:<21} {:5.1}\n", limit.name(), f64::from(count) * 100.0 / all);
        }
    }
    text
}

/// How well the segments match the true ones.
#[must_use]
pub fn segments(scored: &[Scored]) -> String {
    let runs = scored.len().max(1) as f64;
    let right = scored.iter().map(Scored::time_right).sum::<f64>() / runs;
    let mut all = Boundaries::default();
    for one in scored.iter().map(Scored::boundaries) {
        all.true_ones += one.true_ones;
        all.found += one.found;
        all.reported += one.reported;
        all.right += one.right;
        all.lasting += one.lasting;
        all.lasting_found += one.lasting_found;
    }
    let Boundaries { true_ones, found, reported, right: near, lasting, lasting_found } = all;
    format!(
        "Segments: the true limit for {:.1} % of the time; {found} of {true_ones} \
         boundaries found within two RTTs or 0.3 s ({lasting_found} of {lasting} between \
         segments of at least {LASTING_S} s), {near} of {reported} reported are right",
        right * 100.0
    )
}

/// How often a capture gives the cause that the samples of TCP_INFO of the same run give.
#[must_use]
pub fn agreement(scored: &[Scored]) -> String {
    let mut pairs: BTreeMap<(Limit, Limit), u32> = BTreeMap::new();
    let both = scored.iter().filter_map(|one| Some((one.from_tcp_info?, one.found)));
    both.for_each(|pair| *pairs.entry(pair).or_default() += 1);
    let all: u32 = pairs.values().sum();
    let same: u32 = pairs.iter().filter(|((a, b), _)| a == b).map(|(_, count)| count).sum();
    let share = f64::from(same) * 100.0 / f64::from(all.max(1));
    let mut text = format!("The cause from TCP_INFO: {same} of {all}, {share:.1} %\n");
    let mut different: Vec<_> = pairs.into_iter().filter(|((a, b), _)| a != b).collect();
    different.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    for ((info, capture), count) in different.into_iter().take(25) {
        text += &format!("{count:4}  {:<20} from the capture {}\n", info.name(), capture.name());
    }
    text
}
