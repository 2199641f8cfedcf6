//! `test --decide` between a policer and a shallow queue of the same rate and depth.

use crate::program::{LONGHAUL, lab_with, valid, worked};
use serde_json::Value;

/// Both in both directions of the data, 2 s each.
pub(crate) fn a_train_decides() {
    let queue = "rate=13mbit,queue=6000,rtt=13ms";
    let policer = "rate=40mbit,police=13mbit:6000,rtt=13ms";
    for (link, limit, reverse) in [(queue, "shallow-queue", false), (policer, "policer", true)] {
        let mut command = vec![LONGHAUL, "test", "server", "-t", "2", "--decide", "--json"];
        command.extend(reverse.then_some("-R"));
        let server = format!("{LONGHAUL} server");
        let ended = valid(|| lab_with(link, &["--server", &server], &command));
        assert!(worked(&ended, 0), "{ended:?}");
        let document: Value = serde_json::from_str(&ended.stdout).unwrap();
        let decision = &document["decision"];
        if decision["options"].is_null() || decision["between"][1] == "loss" {
            stall_retry::undecided(format!("the first test showed another limit: {decision}"));
        }
        assert_eq!(decision["limit"], limit, "{decision}");
        assert_eq!(
            document["limit"], limit,
            "the finding is the decision: {}",
            document["sentence"]
        );
        assert!(decision["sentence"].as_str().unwrap().contains("of the delay that a queue adds"));
    }
}
