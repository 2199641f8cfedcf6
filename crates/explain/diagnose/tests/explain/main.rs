//! `explain` over simulated transfers whose limit is known, over synthetic samples where a
//! figure is checked, and over invalid measurements.

mod build;
mod causes;
mod degenerate;
mod findings;
mod hour;
mod limits;
mod remedies;
mod segments;
mod timers;
mod transfer;
mod vantage;
