//! The tuning target on the command line.

use crate::failure::Failure;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, value_parser};
use longhaul::tune::{Goal, Profile, TuneGoal};
use units::{BitRate, Rtt};

#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct GoalArgs {
    /// Total rate of all connections, such as 10gbit
    #[arg(long, requires = "rtt", required_unless_present = "profile")]
    rate: Option<BitRate>,
    /// RTT of the path, such as 200ms
    #[arg(long, requires = "rate")]
    rtt: Option<Rtt>,
    /// Parallel connections sharing the rate
    #[arg(long, short = 'P', value_name = "N", default_value_t = 1)]
    #[arg(value_parser = value_parser!(u32).range(1..=65_535), conflicts_with = "profile")]
    streams: u32,
    /// Use a host profile instead of --rate and --rtt
    #[arg(long, value_enum, value_name = "KIND", conflicts_with_all = ["rate", "rtt"])]
    profile: Option<ProfileName>,
    /// Also set the congestion control: bbr, cubic
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
}

impl GoalArgs {
    pub(super) fn goal(&self) -> Result<TuneGoal, Failure> {
        let congestion = self.congestion.clone();
        let (rate, rtt) = match (self.profile, self.rate, self.rtt) {
            (Some(ProfileName(profile)), ..) => {
                return Ok(TuneGoal { goal: Goal::Profile(profile), congestion });
            }
            (None, Some(rate), Some(rtt)) => (rate, rtt),
            _ => return Err(Failure::usage("give --rate and --rtt, or --profile")),
        };
        if rate.bps() == 0 {
            return Err(Failure::usage("the rate cannot be zero; give one such as --rate 10gbit"));
        }
        if rtt == Rtt::ZERO {
            return Err(Failure::usage(
                "an RTT of zero needs no window; measure it with longhaul ping",
            ));
        }
        Ok(TuneGoal { goal: Goal::Target { rate, rtt, streams: self.streams }, congestion })
    }
}

/// A profile, by its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProfileName(Profile);

impl ValueEnum for ProfileName {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [ProfileName; Profile::ALL.len()] = {
            let mut all = [ProfileName(Profile::ALL[0]); Profile::ALL.len()];
            let mut index = 0;
            while index < all.len() {
                all[index] = ProfileName(Profile::ALL[index]);
                index += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.about()))
    }
}
