//! Networks and places of addresses, from databases in MaxMind's format.

use crate::ReachError;
use maxminddb::Reader;
use record::Hop;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

/// Databases, each asked in turn for what those before it did not know.
#[derive(Debug, Default)]
pub(crate) struct Places {
    readers: Vec<Reader<Vec<u8>>>,
}

/// What databases of autonomous systems say: `GeoLite2-ASN` and its kin.
#[derive(Debug, Default, Deserialize)]
struct Network {
    autonomous_system_number: Option<u32>,
    autonomous_system_organization: Option<String>,
}

/// What databases of places say: `GeoLite2-City`, `-Country` and their kin.
#[derive(Debug, Default, Deserialize)]
struct Place {
    city: Option<Named>,
    country: Option<Named>,
}

#[derive(Debug, Default, Deserialize)]
struct Named {
    iso_code: Option<String>,
    #[serde(default)]
    names: BTreeMap<String, String>,
}

impl Places {
    pub(crate) fn open(files: &[PathBuf]) -> Result<Self, ReachError> {
        let open = |file: &PathBuf| {
            let failed = |reason: String| ReachError::Database { file: file.clone(), reason };
            let bytes = std::fs::read(file).map_err(|error| failed(error.to_string()))?;
            Reader::from_source(bytes).map_err(|error| failed(error.to_string()))
        };
        files.iter().map(open).collect::<Result<_, _>>().map(|readers| Places { readers })
    }

    /// Adds what is known of the hop's address. What a database does not say
    /// readably is not known.
    pub(crate) fn tell(&self, hop: &mut Hop) {
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
            if let Ok(Some(place)) = found.decode::<Place>() {
                hop.place = hop.place.take().or_else(|| place.text());
            }
        }
    }
}

impl Place {
    /// `Berlin, DE`, or what there is of it.
    fn text(self) -> Option<String> {
        let english = |named: &Named| named.names.get("en").cloned();
        let city = self.city.as_ref().and_then(english);
        let country =
            self.country.and_then(|country| country.iso_code.clone().or_else(|| english(&country)));
        let parts: Vec<String> = [city, country].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}
