//! A forwarded port: every connection goes to one target.

use crate::ingress::{Accepted, Ingress, Negotiation, Step};
use lane::Target;

/// The ingress of `--forward`. A target that refuses resets the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortForward(pub Target);

impl Ingress for PortForward {
    fn begin(&self, _accepted: Accepted) -> Box<dyn Negotiation> {
        Box::new(self.clone())
    }
}

impl Negotiation for PortForward {
    fn advance(&mut self, _input: &[u8]) -> Step {
        Step::open(self.0.clone())
    }
}
