//! Interfaces whose packets may be other people's.

use crate::doctor::{Root, default_devices};

/// Returns true if the packets of an interface (`any` for all) may be other people's, so that a
/// capture may need permission: a default route leads through it, and it is neither loopback nor
/// an interface of a lab.
#[must_use]
pub fn may_need_permission(interface: &str) -> bool {
    may_need(&Root::machine(), interface)
}

fn may_need(root: &Root, interface: &str) -> bool {
    let is_shared = |name: &String| name != "lo" && !is_of_lab(name);
    default_devices(root)
        .iter()
        .filter(|name| is_shared(name))
        .any(|name| name == interface || interface == "any")
}

/// Returns true for the interfaces of a lab's hosts: lab0, lab1 and so on.
fn is_of_lab(name: &str) -> bool {
    let number = name.strip_prefix("lab").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn write(root: &Path, v4: &[(&str, &str)], v6: &[&str]) {
        let folder = root.join("proc/net");
        std::fs::create_dir_all(&folder).unwrap();
        let head = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n".to_owned();
        let v4 = v4
            .iter()
            .map(|(name, mask)| format!("{name}\t00000000\t010200C0\t0003\t0\t0\t100\t{mask}\n"));
        std::fs::write(folder.join("route"), head + &v4.collect::<String>()).unwrap();
        let (none, zero) = ("0".repeat(32), "00000000");
        let v6 = v6.iter().map(|name| {
            format!("{none} 00 {none} 00 {none} 00000400 {zero} {zero} 00000003 {name}\n")
        });
        std::fs::write(folder.join("ipv6_route"), v6.collect::<String>()).unwrap();
    }

    #[test]
    fn only_interfaces_with_a_default_route() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        assert!(!may_need(&root, "eth0") && !may_need(&root, "any"), "no routes");
        let (default, local) = ("00000000", "00FFFFFF");
        write(folder.path(), &[("wlan0", default), ("eth0", default), ("eth1", local)], &["ppp0"]);
        for (name, expected) in
            [("eth0", true), ("wlan0", true), ("ppp0", true), ("any", true), ("eth1", false)]
        {
            assert_eq!(may_need(&root, name), expected, "{name}");
        }
        assert!(!may_need(&root, "lo"));
        write(folder.path(), &[("eth1", local)], &[]);
        assert!(!may_need(&root, "any"));
    }

    #[test]
    fn neither_in_a_lab_nor_on_loopback() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::at(folder.path());
        write(folder.path(), &[("lab0", "00000000"), ("lo", "00000000")], &["lab12", "lo"]);
        for name in ["lab0", "lab12", "lo", "any"] {
            assert!(!may_need(&root, name), "{name}");
        }
        write(folder.path(), &[("label0", "00000000")], &[]);
        assert!(may_need(&root, "label0") && !may_need(&root, "lab0"));
    }
}
