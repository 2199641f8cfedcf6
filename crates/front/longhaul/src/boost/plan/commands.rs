//! The commands that carry an option out.

use super::options::lane_buffer;
use super::request::PlanSettings;
use super::situation::{DEFAULT_SEND_BUFFER, Situation};
use crate::boost::PORT;
use model::Payload;
use model::boost::Boxes;
use record::{command_line, path_flags};
use std::net::IpAddr;
use units::{BitRate, LossRatio, percent};

/// Settings of the route to the other host, on whichever host sends.
pub(super) fn route(of: &Situation, settings: &PlanSettings) -> Vec<String> {
    let Ok(path) = &of.path else { return Vec::new() };
    let address = of.target.as_ref().and_then(|(host, _)| host.parse::<IpAddr>().ok());
    let prefix = match (settings.route, address.filter(|_| of.sends)) {
        (Some(prefix), _) => prefix.to_string(),
        (None, Some(address @ IpAddr::V4(_))) => format!("{address}/32"),
        (None, Some(address @ IpAddr::V6(_))) => format!("{address}/128"),
        (None, None) => "PREFIX".to_owned(),
    };
    // The plan of a route takes the rate in IP bytes.
    let share = Payload::of_ip(1500).payload_share().unwrap_or(1.0);
    let rate = path.rate.expected.scaled(1.0 / share);
    let mut words = ["longhaul", "tune", "plan", "--route"].map(str::to_owned).to_vec();
    words.push(prefix);
    words.extend(path_flags(rate, path.rtt.expected));
    if path.loss.expected > LossRatio::NONE {
        words.push("--loss".to_owned());
        words.push(percent(path.loss.expected.fraction()).replace(' ', ""));
    }
    vec![command_line(words)]
}

/// The options of well-known programs.
pub(super) fn streams(count: u32) -> Vec<String> {
    vec![
        format!("rclone copy --transfers {count} SOURCE DESTINATION"),
        format!("aria2c -x {count} -s {count} URL"),
    ]
}

/// A copy to the other host, or from it.
pub(super) fn copy(of: &Situation) -> Vec<String> {
    let host = of.target.as_ref().map_or("HOST", |(host, _)| host.as_str());
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let [from, to] = match of.sends {
        true => ["FILE".to_owned(), format!("{host}:")],
        false => [format!("{host}:FILE"), ".".to_owned()],
    };
    vec![command_line(["longhaul", "copy", &from, &to])]
}

/// Keys, then both boxes, with buffers for the goodput that is predicted.
pub(super) fn pair(of: &Situation, lanes: &Boxes, goodput: BitRate) -> Vec<String> {
    let Ok(path) = &of.path else { return Vec::new() };
    let port = of.target.as_ref().and_then(|(_, port)| *port);
    let port = port.map_or("PORT".to_owned(), |port| port.to_string());
    let target = match &of.target {
        Some((host, _)) if host.contains(':') => format!("[{host}]:{port}"),
        Some((host, _)) => format!("{host}:{port}"),
        None => format!("HOST:{port}"),
    };
    let mut settings = vec!["-C".to_owned(), lanes.congestion.name().to_owned()];
    let buffer = lane_buffer(path, goodput);
    if buffer > DEFAULT_SEND_BUFFER {
        settings.extend(["--buffer".to_owned(), format!("{}MiB", buffer.bytes() >> 20)]);
    }
    if lanes.reduction > 1.0 {
        settings.push("--compress".to_owned());
    }
    let command = |words: &[&str]| {
        let words = words.iter().map(|word| (*word).to_owned());
        command_line(["longhaul", "boost"].map(str::to_owned).into_iter().chain(words))
    };
    let with_settings = |words: &[&str]| format!("{} {}", command(words), command_line(&settings));
    let (forward, listen) = (format!("8080:{target}"), format!("[::]:{PORT}"));
    vec![
        command(&["pair", "--far", "FAR", "--forward", &forward]),
        with_settings(&[
            "far",
            "--listen",
            &listen,
            "--key-file",
            "boost-far.key",
            "--allow",
            &target,
        ]),
        with_settings(&[
            "near",
            "--far",
            "FAR",
            "--key-file",
            "boost-near.key",
            "--forward",
            &forward,
        ]),
    ]
}
