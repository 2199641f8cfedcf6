//! The statistics by name.

macro_rules! statistics {
    ($($variant:ident $name:literal,)*) => {
        /// One of the statistics, in the order in which they are listed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Statistic { $($variant,)* }

        impl Statistic {
            pub(crate) const ALL: &[Self] = &[$(Statistic::$variant,)*];

            /// The name in the files of weights and in exported tables.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Statistic::$variant => $name,)* }
            }
        }
    };
}

statistics! {
    LnRttMs "ln_rtt_ms", LnStreams "ln_streams", IsBbr "is_bbr", IsReno "is_reno",
    RwndShare "rwnd_share", SndbufShare "sndbuf_share", IdleShare "idle_share",
    AppLimited "app_limited", NothingUnsent "nothing_unsent", MostlySent "mostly_sent",
    CwndFilled "cwnd_filled", Starved "starved", CwndTurned "cwnd_turned",
    WindowFilled "window_filled", AtWindow "at_window", FlightVariation "flight_variation",
    ActivityIdle "activity_idle", LnWindow64k "ln_window_64k", WindowFloor "window_floor",
    WindowLevel "window_level", Unread "unread", Unscaled "unscaled",
    SmallRequested "small_requested", WindowPerRtt "window_per_rtt", OfRequested "of_requested",
    OfMaxPacing "of_max_pacing", OfPacing "of_pacing", SenderCore "sender_core",
    ReceiverCore "receiver_core", CoreWait "core_wait", LnExcessInFlight "ln_excess_in_flight",
    LnLocalGbps "ln_local_gbps", LnBufferedMb "ln_buffered_mb", CpuGrowth "cpu_growth",
    LnMbps "ln_mbps", MedianOfCeiling "median_of_ceiling", AtCeiling "at_ceiling",
    Stalled "stalled", OfPeak "of_peak", BlockVariation "block_variation",
    LowestBlock "lowest_block", RateTrend "rate_trend", RateSteps "rate_steps", Uneven "uneven",
    Q10Ms "q10_ms", Q50Ms "q50_ms", Q95Ms "q95_ms", Q50PerRtt "q50_per_rtt",
    Q95PerRtt "q95_per_rtt", QLow "q_low", QSpread "q_spread", RttvarPerRtt "rttvar_per_rtt",
    LnQueued "ln_queued", LnQueuedMost "ln_queued_most", RttShift "rtt_shift", AckQMs "ack_q_ms",
    AckQShare "ack_q_share", RttByWindow "rtt_by_window", RateByWindow "rate_by_window",
    Marked "marked", SpuriousShare "spurious_share", LnReorderings "ln_reorderings",
    LnSegmentsPerAck "ln_segments_per_ack", LnEvents "ln_events", LnLost "ln_lost",
    LnEventsPerRtt "ln_events_per_rtt", LnLoss "ln_loss", OfLossEquation "of_loss_equation",
    LostPerEvent "lost_per_event", MostLost "most_lost", MeanLost "mean_lost", Clusters "clusters",
    Singles "singles", Dispersion "dispersion", QAtLossMs "q_at_loss_ms",
    QAtLossPerRtt "q_at_loss_per_rtt", QAtLossVariation "q_at_loss_variation",
    QAtLossRank "q_at_loss_rank", LnBacklog "ln_backlog", LnLeastBacklog "ln_least_backlog",
    RateAtLoss "rate_at_loss", RateAtLossLeast "rate_at_loss_least",
    RateAtLossVariation "rate_at_loss_variation", WindowVariation "window_variation",
    LnCeilingTest "ln_ceiling_test", QAfterLoss "q_after_loss", GapVariation "gap_variation",
    LnGapRtts "ln_gap_rtts", SinceLoss "since_loss", BucketRank "bucket_rank",
    BucketSpread "bucket_spread", SlowStart "slow_start", NoThreshold "no_threshold",
    LnFromRtts "ln_from_rtts", LnRtts "ln_rtts", LnSeconds "ln_seconds",
    WindowGrowth "window_growth", LnWindow "ln_window", WindowLow "window_low", Overshot "overshot",
    OvershootLost "overshoot_lost", LnOvershootWindow "ln_overshoot_window",
    OvershootQPerRtt "overshoot_q_per_rtt", OvershootQMs "overshoot_q_ms",
    LnSinceOvershoot "ln_since_overshoot", NormDiff "norm_diff", DelayByRate "delay_by_rate",
    StepFit "step_fit", StepSize "step_size", StepRtt "step_rtt", StepQueue "step_queue",
    StepEvents "step_events", RateByWindowQueued "rate_by_window_queued",
    RttByWindowQueued "rtt_by_window_queued", RxQ10Ms "rx_q10_ms", RxQ50Ms "rx_q50_ms",
    RxQ95Ms "rx_q95_ms", RxQ50PerRtt "rx_q50_per_rtt", RxQ95PerRtt "rx_q95_per_rtt",
    RxQSpread "rx_q_spread", RxRateByRtt "rx_rate_by_rtt", RxLnEvents "rx_ln_events",
    RxLnEventsPerRtt "rx_ln_events_per_rtt", RxLnOutOfOrder "rx_ln_out_of_order",
    RxStepsOutOfOrder "rx_steps_out_of_order", RxPerEvent "rx_per_event",
    RxMostPerEvent "rx_most_per_event", RxWindowsPerEvent "rx_windows_per_event",
    RxQAtEventMs "rx_q_at_event_ms", RxQAtEventPerRtt "rx_q_at_event_per_rtt",
    RxRateAtEvent "rx_rate_at_event", RxRateAtEventVariation "rx_rate_at_event_variation",
    RxKeptAfterEvent "rx_kept_after_event", RxGapRtts "rx_gap_rtts",
    RxGapVariation "rx_gap_variation", RxSinceEvent "rx_since_event",
    RxWindowTurned "rx_window_turned", RxWindowFloor "rx_window_floor",
    RxLnWindow64k "rx_ln_window_64k", RxUnscaled "rx_unscaled", RxUnread "rx_unread",
}

impl Statistic {
    /// The statistic of that name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Statistic::ALL.iter().copied().find(|statistic| statistic.name() == name)
    }
}
