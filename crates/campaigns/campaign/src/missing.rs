//! The optional sysctls of a study that its labs do not have: those of the whole machine, and
//! those that are read-only in a network namespace other than the first.

use crate::CampaignError;
use crate::cell_plan::Missing;
use host::netns::NetNs;
use host::sysctl;
use std::io;
use study::Study;

/// Their names.
pub(crate) fn names(study: &Study) -> Result<Missing, CampaignError> {
    let optional = || study.parts.iter().flat_map(|part| &part.plan.optional);
    if optional().next().is_none() {
        return Ok(Missing::new());
    }
    // A host of a lab is such a namespace.
    let host = NetNs::create().map_err(CampaignError::system("creating a network namespace"))?;
    let missing = host.run(|| {
        let mut missing = Missing::new();
        for one in optional() {
            match sysctl::write(&one.name, &one.value) {
                Ok(()) => {}
                Err(source) if source.kind() == io::ErrorKind::InvalidInput => {
                    let (name, value) = (one.name.clone(), one.value.clone());
                    return Err(CampaignError::Sysctl { name, value, source });
                }
                Err(_) => drop(missing.insert(one.name.clone())),
            }
        }
        Ok(missing)
    });
    missing.map_err(CampaignError::system("entering a network namespace"))?
}
