//! Fields and protocols by name.

use crate::application::Application;
use crate::field::{EXPERT, Field};
use capture::dissect::Protocol;
use std::borrow::Cow;

/// Today's name of a field or protocol that Wireshark renamed.
pub(crate) fn current_name(name: &str) -> Cow<'_, str> {
    const RENAMED: [(&str, &str); 2] = [("ssl", "tls"), ("bootp", "dhcp")];
    let renamed = RENAMED.iter().find_map(|(old, new)| {
        let rest = name.strip_prefix(old)?;
        (rest.is_empty() || rest.starts_with('.')).then(|| format!("{new}{rest}"))
    });
    renamed.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// A protocol that filters can test for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tested {
    /// The frame, which every packet is.
    Frame,
    /// A header that is dissected.
    Header(Protocol),
    /// A payload, by its port or type.
    Application(Application),
    /// The expert information.
    Expert,
}

/// Protocols that filters can test for, by name.
pub fn protocols() -> impl Iterator<Item = (&'static str, Tested)> {
    let headers = Protocol::ALL.into_iter().map(|protocol| match protocol {
        Protocol::None => ("frame", Tested::Frame),
        other => (other.name(), Tested::Header(other)),
    });
    let applications = Application::ALL.iter().map(|it| (it.name(), Tested::Application(*it)));
    headers.chain(applications).chain([(EXPERT, Tested::Expert)])
}

/// The protocol of that name.
#[must_use]
pub fn protocol_from_name(name: &str) -> Option<Tested> {
    let current = current_name(name);
    protocols().find(|(its, _)| *its == current).map(|(_, protocol)| protocol)
}

/// The field or protocol whose name is nearest to `name`: of the same protocol, if that is
/// known.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let current = current_name(name);
    let name = current.as_ref();
    let fields = Field::ALL.iter().map(|field| field.description().name);
    let names = fields.chain(protocols().map(|(name, _)| name));
    let first = |name: &str| name.split('.').next().map(str::to_owned);
    let scored = names.map(|its| {
        let is_same_protocol = name.contains('.') && first(its) == first(name);
        (strsim::jaro_winkler(its, name) + f64::from(u8::from(is_same_protocol)), its)
    });
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(score, _)| *score > 0.75).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_has_a_neighbour() {
        assert_eq!(nearest("tcp.prot"), Some("tcp.port"));
        assert_eq!(nearest("ip.adr"), Some("ip.addr"));
        assert_eq!(nearest("ssl.handshake.typ"), Some("tls.handshake.type"));
        assert_eq!(nearest("zzz"), None);
    }
}
