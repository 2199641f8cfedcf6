//! Settings applied and reverted on a host made of files: killed at any point, changed by
//! others meanwhile, without privileges, after a reboot.

#![expect(clippy::unwrap_used, reason = "in a test an unwrap is an assertion")]

mod defaults;
mod fake;
mod fake_routes;
mod killed;
mod model;
mod others;
mod plans;
mod route_plans;
mod route_races;
mod routes;
