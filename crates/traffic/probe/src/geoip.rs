//! AS and location of addresses, from databases in the MaxMind DB format.

use crate::ProbeError;
use host::file::read_bounded;
use maxminddb::Reader;
use record::{Hop, HopPosition, PositionSource};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use units::ByteCount;

/// Maximum size of a database; it is read into memory. City databases take 100 MB.
const MAX_SIZE: ByteCount = ByteCount::from_bytes(512 << 20);

/// Databases in order of precedence: later ones fill in missing fields.
#[derive(Debug, Default)]
pub(crate) struct GeoIp {
    readers: Vec<Reader<Vec<u8>>>,
}

/// A record of an AS database such as `GeoLite2-ASN`.
#[derive(Debug, Default, Deserialize)]
struct Network {
    autonomous_system_number: Option<u32>,
    autonomous_system_organization: Option<String>,
}

/// A record of a location database such as `GeoLite2-City` or `GeoLite2-Country`.
#[derive(Debug, Default, Deserialize)]
struct Location {
    city: Option<Named>,
    country: Option<Named>,
    location: Option<Coordinates>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
struct Coordinates {
    latitude: Option<f64>,
    longitude: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
struct Named {
    iso_code: Option<String>,
    #[serde(default)]
    names: BTreeMap<String, String>,
}

impl GeoIp {
    pub(crate) fn open(files: &[PathBuf]) -> Result<Self, ProbeError> {
        let open = |file: &PathBuf| {
            let failed = |reason: String| ProbeError::Database { file: file.clone(), reason };
            let bytes = read_bounded(file, MAX_SIZE).map_err(|error| failed(error.to_string()))?;
            Reader::from_source(bytes).map_err(|error| failed(error.to_string()))
        };
        files.iter().map(open).collect::<Result<_, _>>().map(|readers| GeoIp { readers })
    }

    /// Adds AS and location of the hop's address. Unreadable records are ignored.
    pub(crate) fn annotate(&self, hop: &mut Hop) {
        let Some(address) = hop.address.as_deref().and_then(|text| text.parse::<IpAddr>().ok())
        else {
            return;
        };
        for reader in &self.readers {
            let Ok(found) = reader.lookup(address) else { continue };
            if let Ok(Some(network)) = found.decode::<Network>() {
                hop.asn = hop.asn.or(network.autonomous_system_number);
                hop.as_name = hop.as_name.take().or(network.autonomous_system_organization);
            }
            if let Ok(Some(location)) = found.decode::<Location>() {
                hop.position = hop.position.take().or_else(|| location.position());
                hop.place = hop.place.take().or_else(|| location.text());
            }
        }
    }
}

impl Location {
    fn position(&self) -> Option<HopPosition> {
        let Coordinates { latitude, longitude } = self.location?;
        let position = places::Position::new(latitude?, longitude?)?;
        Some(HopPosition {
            latitude: position.latitude(),
            longitude: position.longitude(),
            place: self.text().unwrap_or_else(|| position.to_string()),
            country: self.country.as_ref().and_then(|country| country.iso_code.clone()),
            source: PositionSource::Database,
        })
    }

    /// `Berlin, DE`, or the part that is known.
    fn text(&self) -> Option<String> {
        let english = |named: &Named| named.names.get("en").cloned();
        let city = self.city.as_ref().and_then(english);
        let country = self.country.as_ref();
        let country =
            country.and_then(|country| country.iso_code.clone().or_else(|| english(country)));
        let parts: Vec<String> = [city, country].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of the MaxMind DB File Format Specification 2.0.
    enum Value<'a> {
        Text(&'a str),
        U16(u16),
        U32(u32),
        U64(u64),
        Map(Vec<(&'a str, Value<'a>)>),
        None,
    }

    fn encode(value: &Value<'_>, out: &mut Vec<u8>) {
        let head = |kind: u8, size: usize| (kind << 5) | u8::try_from(size).unwrap();
        match value {
            Value::Text(text) if text.len() < 29 => {
                out.push(head(2, text.len()));
                out.extend(text.as_bytes());
            }
            Value::Text(text) => {
                out.extend([head(2, 29), u8::try_from(text.len() - 29).unwrap()]);
                out.extend(text.as_bytes());
            }
            Value::U16(number) => {
                out.push(head(5, 2));
                out.extend(number.to_be_bytes());
            }
            Value::U32(number) => {
                out.push(head(6, 4));
                out.extend(number.to_be_bytes());
            }
            // Type 9 and 11 are written in a second byte.
            Value::U64(number) => {
                out.extend([8, 2]);
                out.extend(number.to_be_bytes());
            }
            Value::None => out.extend([0, 4]),
            Value::Map(entries) => {
                out.push(head(7, entries.len()));
                for (key, value) in entries {
                    encode(&Value::Text(key), out);
                    encode(value, out);
                }
            }
        }
    }

    /// A database with one record, for 192.0.2.0/24.
    fn database(value: &Value<'_>) -> Vec<u8> {
        let prefix = u32::from_be_bytes([192, 0, 2, 0]);
        let nodes = 24u32;
        let mut bytes = Vec::new();
        for at in 0..nodes {
            let next = if at + 1 == nodes { nodes + 16 } else { at + 1 };
            let is_right = prefix >> (31 - at) & 1 == 1;
            for right in [false, true] {
                let record = if right == is_right { next } else { nodes };
                bytes.extend(&record.to_be_bytes()[1..]);
            }
        }
        bytes.extend([0; 16]);
        encode(value, &mut bytes);
        bytes.extend(b"\xab\xcd\xefMaxMind.com");
        let metadata = Value::Map(vec![
            ("binary_format_major_version", Value::U16(2)),
            ("binary_format_minor_version", Value::U16(0)),
            ("build_epoch", Value::U64(1)),
            ("database_type", Value::Text("Test")),
            ("description", Value::Map(vec![])),
            ("ip_version", Value::U16(4)),
            ("languages", Value::None),
            ("node_count", Value::U32(nodes)),
            ("record_size", Value::U16(24)),
        ]);
        encode(&metadata, &mut bytes);
        bytes
    }

    fn network() -> Vec<u8> {
        database(&Value::Map(vec![
            ("autonomous_system_number", Value::U32(64_500)),
            ("autonomous_system_organization", Value::Text("An Organization of Thirty Bytes")),
        ]))
    }

    fn location() -> Vec<u8> {
        let names = |name| Value::Map(vec![("names", Value::Map(vec![("en", Value::Text(name))]))]);
        let country = Value::Map(vec![("iso_code", Value::Text("CH"))]);
        database(&Value::Map(vec![("city", names("Bern")), ("country", country)]))
    }

    /// Looks an address up in databases that are written to files.
    fn lookup(databases: &[Vec<u8>], address: &str) -> Result<Hop, ProbeError> {
        let folder = tempfile::tempdir().unwrap();
        let file = |(n, bytes): (usize, &Vec<u8>)| {
            let file = folder.path().join(n.to_string());
            std::fs::write(&file, bytes).unwrap();
            file
        };
        let files: Vec<PathBuf> = databases.iter().enumerate().map(file).collect();
        let mut hop = Hop { address: Some(address.to_owned()), ..Hop::default() };
        GeoIp::open(&files)?.annotate(&mut hop);
        Ok(hop)
    }

    #[test]
    fn databases_complement_each_other() {
        let hop = lookup(&[network(), location()], "192.0.2.77").unwrap();
        assert_eq!(hop.asn, Some(64_500));
        assert_eq!(hop.as_name.as_deref(), Some("An Organization of Thirty Bytes"));
        assert_eq!(hop.place.as_deref(), Some("Bern, CH"));
        for elsewhere in ["192.0.3.1", "2001:db8::1"] {
            let hop = lookup(&[network(), location()], elsewhere).unwrap();
            assert_eq!((hop.asn, hop.place), (None, None), "{elsewhere}");
        }
    }

    #[test]
    fn broken_databases_are_refused_or_ignored() {
        assert!(lookup(&[b"no database".to_vec()], "192.0.2.1").unwrap_err().is_usage());
        let wrong = Value::Map(vec![("autonomous_system_number", Value::Text("many"))]);
        assert_eq!(lookup(&[database(&wrong)], "192.0.2.1").unwrap().asn, None);
        // No panic, whichever byte is wrong and wherever the file ends.
        let whole = [network(), location()];
        for bytes in &whole {
            for at in 0..bytes.len() {
                for value in [0, 0x7f, 0xff] {
                    let mut changed = bytes.clone();
                    changed[at] = value;
                    let _ = lookup(&[changed], "192.0.2.77");
                }
                let _ = lookup(&[bytes[..at].to_vec()], "192.0.2.77");
            }
        }
    }
}
