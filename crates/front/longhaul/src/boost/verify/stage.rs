//! The lab: five hosts, or those of a plan, and the names of devices in it.

use crate::lab::LabRequest;
use crate::{Fault, Problem};
use topology::Plan;
use units::BitRate;

/// The path between hosts and boxes.
const LAN_RTT: &str = "0.2ms";
/// Rate of the links beside the path between the boxes: they limit nothing.
const LAN_RATE: BitRate = BitRate::from_bps(1_000_000_000);
/// How much faster than the path they are.
const LAN_FACTOR: f64 = 4.0;

/// A basic string of TOML, which has the escapes of JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A link of a plan.
fn link(between: [&str; 2], path: &str) -> String {
    let path = quoted(path);
    let [from, to] = between;
    format!("[[link]]\nbetween = [\"{from}\", \"{to}\"]\npath = {path}\n")
}

/// The plan of `app`, `near`, `wan`, `far` and `server` with this path from `wan` to `far`.
pub(super) fn five_hosts(path: &str, sysctls: &[(String, String)]) -> Result<String, Problem> {
    let rate = crate::lab::parse_path(path)?.rate().unwrap_or(LAN_RATE);
    let lan_rate = rate.scaled(LAN_FACTOR).max(LAN_RATE);
    let lan = format!("rate={}bit,rtt={LAN_RTT}", lan_rate.bps());
    let settings =
        sysctls.iter().map(|(key, value)| format!("{} = {}", quoted(key), quoted(value)));
    let settings = settings.collect::<Vec<_>>().join(", ");
    // Buffers of the boxes do not limit; their congestion control is BBR unless lanes have another.
    let boxes = "congestion = \"bbr\"\nsysctl = { \"net.ipv4.tcp_wmem\" = \"4096 16384 67108864\", \
        \"net.ipv4.tcp_rmem\" = \"4096 131072 67108864\" }";
    Ok([
        "name = \"boost-verify\"\n".to_owned(),
        format!("[host.app]\nsysctl = {{ {settings} }}\n"),
        format!("[host.server]\nsysctl = {{ {settings} }}\n"),
        format!("[router.near]\n{boxes}\n[router.wan]\n[router.far]\n{boxes}\n"),
        link(["app", "near"], &lan),
        link(["near", "wan"], &lan),
        link(["wan", "far"], path),
        link(["far", "server"], &lan),
    ]
    .concat())
}

/// What a plan says of the hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout {
    /// The device of `near` towards `app`.
    pub(super) near_device: String,
    /// The host before the bottleneck: `wan`, or `near`.
    pub(super) before: &'static str,
}

impl Layout {
    pub(super) fn of(request: &LabRequest) -> Result<Self, Problem> {
        request.check()?;
        let plan = request.plan()?;
        let missing = |what: String| {
            Problem::new(Fault::Request, format!("the plan has no {what}, which the boxes need"))
        };
        let host = |name: &str| -> Result<usize, Problem> {
            let found = plan.hosts.iter().position(|host| host.name == name);
            found.ok_or_else(|| missing(format!("host {name}")))
        };
        let (app, near) = (host("app")?, host("near")?);
        host("far")?;
        host("server")?;
        let link = between(&plan, app, near);
        let link = link.ok_or_else(|| missing("link between app and near".to_owned()))?;
        Ok(Layout {
            near_device: plan.device(near, link),
            before: if host("wan").is_ok() { "wan" } else { "near" },
        })
    }
}

fn between(plan: &Plan, one: usize, other: usize) -> Option<usize> {
    plan.links_at(one).find(|link| plan.links_at(other).any(|found| found == *link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::LabHosts;

    #[test]
    fn five_hosts_are_a_plan() {
        let sysctls = [("net.ipv4.tcp_window_scaling".to_owned(), "0".to_owned())];
        let text = five_hosts("rate=1gbit,rtt=100ms,loss=0.1%", &sysctls).unwrap();
        let hosts = LabHosts::Plan { file: "boost-verify.toml".to_owned(), text };
        let request = LabRequest { hosts, ..LabRequest::default() };
        let layout = Layout::of(&request).unwrap();
        assert_eq!(layout.before, "wan");
        let plan = request.plan().unwrap();
        assert_eq!((plan.hosts.len(), plan.links.len()), (5, 4));
        let rates: Vec<_> = plan.links.iter().map(|link| link.path.rate().unwrap().bps()).collect();
        assert_eq!(rates, [4_000_000_000, 4_000_000_000, 1_000_000_000, 4_000_000_000]);
        assert!(five_hosts("nonsense=1", &[]).is_err());
    }
}
