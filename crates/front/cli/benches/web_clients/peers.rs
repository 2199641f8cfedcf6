//! The clients, which `scripts/web-clients` fetches below target/.

use bench_harness::Fallible;
use std::path::{Path, PathBuf};

/// Where the clients are.
#[derive(Debug)]
pub(crate) struct Peers {
    pub(crate) folder: PathBuf,
}

impl Peers {
    /// Those of `WEB_CLIENTS`, or of target/peers/web-clients.
    pub(crate) fn find() -> Fallible<Self> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/peers/web-clients");
        let folder = std::env::var_os("WEB_CLIENTS").map_or(built, PathBuf::from);
        let folder = std::path::absolute(folder)?;
        let needed = [
            "bin/ndt7-client",
            "bin/mach",
            "node_modules/@m-lab/ndt7",
            "node_modules/@cloudflare/speedtest",
            "node_modules/playwright-core",
        ];
        for path in needed.map(|path| folder.join(path)) {
            if !path.exists() {
                let path = path.display();
                return Err(format!("{path} is missing: run scripts/web-clients").into());
            }
        }
        Ok(Peers { folder })
    }

    /// A program among them.
    pub(crate) fn program(&self, name: &str) -> String {
        self.folder.join("bin").join(name).display().to_string()
    }
}
