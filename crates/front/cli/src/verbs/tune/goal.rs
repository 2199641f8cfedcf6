//! The tuning target on the command line.

use crate::failure::Failure;
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum, value_parser};
use longhaul::tune::{Goal, Profile, RouteGoal, TuneGoal};
use record::RoutePrefix;
use units::{BitRate, ByteCount, LossRatio, Rtt};

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
    #[command(flatten)]
    route: RouteArgs,
}

/// Metrics of the route to one destination instead of sysctls.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct RouteArgs {
    /// Set TCP metrics of the route to PREFIX instead of sysctls
    ///
    /// PREFIX is such as 192.0.2.0/24 or 2001:db8::/32; 0.0.0.0/0 and ::/0 are the default
    /// routes. A prefix without a route of its own gets a copy of the route in force.
    #[arg(long, value_name = "PREFIX")]
    route: Option<RoutePrefix>,
    /// Random loss of the path, such as 0.1%, for predictions
    #[arg(long, value_name = "LOSS", requires = "route")]
    loss: Option<LossRatio>,
    /// Size of a transfer to predict [default: 1MB]
    #[arg(long, value_name = "SIZE", requires = "route")]
    bytes: Option<ByteCount>,
    /// Initial congestion window in segments [default: computed]
    #[arg(long, value_name = "N", requires = "route")]
    initcwnd: Option<u32>,
    /// Initial receive window in segments; it can only be lowered
    #[arg(long, value_name = "N", requires = "route")]
    initrwnd: Option<u32>,
}

/// What a plan is for.
pub(super) enum Wanted {
    /// The host's sysctls.
    Host(TuneGoal),
    /// The route to one destination.
    Route(Box<RouteGoal>),
}

impl GoalArgs {
    pub(super) fn wanted(&self) -> Result<Wanted, Failure> {
        let TuneGoal { goal, congestion } = self.goal()?;
        let &RouteArgs { route, loss, bytes, initcwnd, initrwnd } = &self.route;
        let Some(route) = route else { return Ok(Wanted::Host(TuneGoal { goal, congestion })) };
        let (rate, rtt, streams) = match goal {
            Goal::Target { rate, rtt, streams } => (rate, rtt, streams),
            Goal::Profile(profile) => (profile.rate(), profile.rtt(), profile.streams()),
        };
        Ok(Wanted::Route(Box::new(RouteGoal {
            streams,
            loss,
            bytes,
            congestion,
            initcwnd,
            initrwnd,
            ..RouteGoal::new(route, rate, rtt)
        })))
    }

    fn goal(&self) -> Result<TuneGoal, Failure> {
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
