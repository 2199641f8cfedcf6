//! The clients, which `scripts/web-clients` fetches below target/.

use bench_harness::Fallible;
use std::path::{Path, PathBuf};

/// Where the clients are.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) folder: PathBuf,
    pub(crate) ndt7_client: PathBuf,
    pub(crate) mach: PathBuf,
}

impl Peers {
    /// Those of `WEB_CLIENTS`, or of target/peers/web-clients.
    pub(crate) fn find() -> Fallible<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/peers/web-clients");
        let folder = std::env::var_os("WEB_CLIENTS").map_or(built, PathBuf::from);
        let folder = std::path::absolute(folder)?;
        let (ndt7_client, mach) = (folder.join("bin/ndt7-client"), folder.join("bin/mach"));
        let modules = folder.join("node_modules");
        let scripts = ["@m-lab/ndt7", "@cloudflare/speedtest", "playwright-core"];
        let needed = [ndt7_client.clone(), mach.clone()].into_iter();
        for path in needed.chain(scripts.map(|name| modules.join(name))) {
            if !path.exists() {
                let path = path.display();
                return Err(format!("{path} is missing: run scripts/web-clients").into());
            }
        }
        Ok(Peers { folder, ndt7_client, mach })
    }
}
