//! The optional sysctls of a study that its labs do not have: those of the whole machine, and
//! those that are read-only in a network namespace other than the first.

use crate::CampaignError;
use crate::cell_plan::Missing;
use host::netns::NetNs;
use host::sysctl;
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
        let missing = optional().filter(|one| sysctl::write(&one.name, &one.value).is_err());
        missing.map(|one| one.name.clone()).collect()
    });
    missing.map_err(CampaignError::system("entering a network namespace"))
}
