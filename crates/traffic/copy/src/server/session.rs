//! One copy at the far end.

use crate::budget::Budget;
use crate::directory::{Directory, Links, is_directory, split};
use crate::hello::{ClientHello, fresh_identity};
use crate::progress::Progress;
use crate::protocol::message::{Message, Request};
use crate::receiver::{self, Destination};
use crate::transport::{Session, udt};
use crate::{CopyError, sender, sockets, walk};
use control::Algorithm;
use host::clock;
use host::directory::is_unsafe;
use host::stop::StopFlag;
use pinned_tls::{Identity, PublicKey};
use problem::Field;
use rustix::process::{Resource, getrlimit};
use std::ffi::OsStr;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use udt_socket::{NativeKeys, NativeSocket};

/// What a client may take to connect and ask.
const REQUEST: Duration = Duration::from_secs(30);

/// Which files clients can have.
#[derive(Debug)]
pub enum Root {
    /// Those that the user can.
    Any,
    /// Those below a directory.
    Below(RootDirectory),
}

/// A directory that no path leaves.
#[derive(Debug)]
pub struct RootDirectory {
    directory: Arc<Directory>,
    is_writable: bool,
    /// Those that copies may have open.
    open_files: Arc<Budget>,
}

impl Root {
    /// Those below a directory; only with `is_writable` can clients change anything.
    ///
    /// # Errors
    /// The directory cannot be opened.
    pub fn below(path: &Path, is_writable: bool) -> Result<Self, CopyError> {
        let directory = Directory::open_to_write(path)
            .map_err(|error| CopyError::at(path.as_os_str().as_bytes(), error))?;
        let directory = Arc::new(directory);
        let open_files = Budget::new(open_files_of_copies());
        Ok(Root::Below(RootDirectory { directory, is_writable, open_files }))
    }

    fn sources(&self, patterns: &[Vec<u8>]) -> Result<Vec<walk::Source>, CopyError> {
        match self {
            Root::Any => walk::sources_anywhere(patterns),
            Root::Below(root) => walk::sources_below(&root.directory, patterns),
        }
    }

    fn destination(&self, path: &[u8], sources: u32) -> Result<Destination, CopyError> {
        match self {
            Root::Any => local_destination(path, sources, None),
            Root::Below(root) if !root.is_writable => {
                let why = format!("the server is read-only; start it with {}", Field::Writable);
                Err(CopyError::Local(why))
            }
            Root::Below(root) => destination_below(root, path, sources),
        }
    }
}

/// Where a copy to a path of this host goes, as with cp(1): into a directory that exists,
/// else under that name.
pub(crate) fn local_destination(
    path: &[u8],
    sources: u32,
    expected: Option<Vec<Vec<u8>>>,
) -> Result<Destination, CopyError> {
    let below = |directory| Destination::new(directory, Budget::new(open_files_of_copies()));
    match Directory::open_to_write(Path::new(OsStr::from_bytes(path))) {
        Ok(directory) => return Ok(Destination { expected, ..below(directory) }),
        Err(error) if is_unsafe(&error) => return Err(CopyError::at(path, error)),
        Err(_) => {}
    }
    let (parent, name) = split(path);
    let name = name.filter(|_| sources == 1 && !path.ends_with(b"/"));
    let name = name.ok_or_else(|| CopyError::at(path, "no such directory; create it first"))?;
    let directory =
        Directory::open_to_write(&parent).map_err(|error| CopyError::at(path, error))?;
    Ok(Destination { rename: Some(name), expected, ..below(directory) })
}

/// A quarter of the descriptors that the process may have: the others are for connections,
/// and for tests of the same server.
fn open_files_of_copies() -> usize {
    let most = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
    usize::try_from(most / 4).unwrap_or(usize::MAX)
}

fn destination_below(
    RootDirectory { directory: root, open_files, .. }: &RootDirectory,
    path: &[u8],
    sources: u32,
) -> Result<Destination, CopyError> {
    let wrong = |error: std::io::Error| CopyError::at(path, error);
    let names: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    let joined = names.join(&b'/');
    if let Ok(directory) = root.directory(&joined, Links::Follow)
        && directory.own_stat().is_ok_and(|stat| is_directory(&stat))
    {
        return Ok(Destination::new(directory, Arc::clone(open_files)));
    }
    let Some((name, parent)) = names.split_last().filter(|_| sources == 1) else {
        return Err(CopyError::at(path, "no such directory; create it first"));
    };
    let directory = root.directory(&parent.join(&b'/'), Links::Follow).map_err(wrong)?;
    let rename = Some(name.to_vec());
    Ok(Destination { rename, ..Destination::new(directory, Arc::clone(open_files)) })
}

/// A session that waits for its client.
pub(super) struct Prepared {
    pub(super) identity: Identity,
    pub(super) client: PublicKey,
    algorithm: Algorithm,
    pub(super) session: Arc<Session>,
    udp: Mutex<Option<UdpSocket>>,
    udp_port: Option<u16>,
}

impl Prepared {
    pub(super) fn new(
        hello: &ClientHello,
        bind: Option<SocketAddr>,
        stop: StopFlag,
    ) -> Result<Self, CopyError> {
        let udp = sockets::udp_any(bind).ok();
        let udp_port = udp.as_ref().and_then(|socket| Some(socket.local_addr().ok()?.port()));
        Ok(Prepared {
            identity: fresh_identity()?,
            client: hello.key()?,
            algorithm: hello.algorithm(),
            session: Arc::new(Session::new(stop)),
            udp: Mutex::new(udp),
            udp_port,
        })
    }

    pub(super) fn key(&self) -> PublicKey {
        self.identity.public_key()
    }

    pub(super) const fn udp_port(&self) -> Option<u16> {
        self.udp_port
    }

    /// Serves the client's request over whichever connection it uses.
    pub(super) fn serve(
        &self,
        root: &Root,
        progress: &Progress,
        began: impl FnOnce(&Request),
    ) -> Result<(), CopyError> {
        std::thread::scope(|scope| {
            scope.spawn(|| self.carry_udt());
            let result = self.answer(root, progress, began);
            if let Err(error) = &result {
                self.session.give_up(error.clone());
            }
            result
        })
    }

    fn carry_udt(&self) {
        let Some(socket) = host::lock::lock(&self.udp).take() else { return };
        let (identity, algorithm) = (&self.identity, self.algorithm);
        let keys = NativeKeys { identity, peer: self.client, algorithm };
        let session = &self.session;
        let is_decided = || session.has_begun() || session.failure().is_some();
        if let Ok(Some(mut socket)) = NativeSocket::accept(socket, &keys, REQUEST, is_decided) {
            udt::carry(&mut socket, session, false, &|_| {});
        }
    }

    fn answer(
        &self,
        root: &Root,
        progress: &Progress,
        began: impl FnOnce(&Request),
    ) -> Result<(), CopyError> {
        let until = clock::now() + REQUEST;
        let request = loop {
            match self.session.receive_within(Duration::from_millis(100))? {
                Some(Message::Request(request)) => break request,
                Some(_) => return Err(CopyError::Protocol("it began without a request".into())),
                None if clock::now() > until => {
                    return Err(CopyError::Connection("the client did not connect".into()));
                }
                None => {}
            }
        };
        began(&request);
        match request {
            Request::Receive { destination, sources } => {
                let destination = root.destination(&destination, sources)?;
                self.session.send(&Message::Accepted)?;
                receiver::receive(&self.session, progress, &destination)
            }
            Request::Send { limit_bps, sources } => {
                self.session.limit(limit_bps);
                let sources = root.sources(&sources)?;
                walk::check_names(&sources)?;
                self.session.send(&Message::Accepted)?;
                sender::send(&self.session, progress, sources)
            }
        }
    }
}
