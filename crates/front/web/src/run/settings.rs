//! What an experiment changes of a flow's connection.

use super::message::Plan;
use crate::connection::Connection;

/// Sets the congestion control and the pacing rate of a step.
///
/// # Errors
/// The kernel does not have them.
pub(super) fn apply(plan: &Plan, connection: &Connection) -> Result<(), String> {
    if let Some(name) = &plan.congestion
        && connection.set_congestion(name).is_err()
    {
        return Err(format!("the server has no congestion control {name}"));
    }
    if let Some(rate) = plan.pacing
        && connection.set_max_pacing_rate(rate).is_err()
    {
        return Err("the server cannot pace a connection".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::conductor::planned;
    use super::*;
    use crate::run::message::StepKind;
    use tokio::net::{TcpListener, TcpStream};
    use units::BitRate;

    #[test]
    fn a_step_paces_its_connections() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let connection = Connection::of(&stream, false).unwrap();
            let mut plan = planned(StepKind::Download, 1, 1.0, "");
            let limit = || connection.tcp_info().unwrap().max_pacing_rate;
            apply(&plan, &connection).unwrap();
            assert_eq!(limit(), None);
            plan.pacing = Some(BitRate::from_bps(8_000_000));
            apply(&plan, &connection).unwrap();
            assert_eq!(limit(), Some(1_000_000));
            plan.congestion = Some("nonesuch".to_owned());
            assert!(apply(&plan, &connection).is_err());
        });
    }
}
