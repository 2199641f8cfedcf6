//! The incomplete copy of a file, under a name of its own. It is locked while it is open; it
//! is closed where nothing comes for it, as descriptors are few.

use crate::protocol::BLOCK_BYTES;
use crate::receiver::SharedDirectory;
use crate::transport::Session;
use crate::walk::PARTIAL;
use host::clock;
use rustix::fs::{FallocateFlags, FileType, FlockOperation, Stat, fallocate, flock, fstat};
use rustix::process::geteuid;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// Longest name of a file (`NAME_MAX`).
const MAX_NAME: usize = 255;
/// What an earlier copy of the file may take to end.
const LOCK: Duration = Duration::from_secs(10);

/// An incomplete copy.
#[derive(Debug)]
pub(super) enum Partial {
    None,
    Open(File),
    Closed(Identity),
}

impl Partial {
    pub(super) const fn is_open(&self) -> bool {
        matches!(self, Partial::Open(_))
    }

    /// Closes it; [`reopen`] finds it again.
    pub(super) fn close(&mut self) {
        if let Partial::Open(file) = self {
            let identity = fstat(&*file).map_or(Identity::default(), |stat| Identity::of(&stat));
            *self = Partial::Closed(identity);
        }
    }
}

/// A file as it was: its inode, and the time of the last change of anything about it. The
/// default is no file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Identity {
    inode: (u64, u64),
    changed: (i64, i64),
    bytes: i64,
}

impl Identity {
    pub(super) fn of(stat: &Stat) -> Self {
        Identity {
            inode: (stat.st_dev, stat.st_ino),
            changed: (stat.st_ctime, i64::try_from(stat.st_ctime_nsec).unwrap_or_default()),
            bytes: stat.st_size,
        }
    }
}

/// Opens an incomplete copy that was closed, and that nobody has changed meanwhile.
pub(super) fn reopen(
    parent: &SharedDirectory,
    name: &[u8],
    identity: &Identity,
) -> io::Result<File> {
    let changed = || io::Error::other("another copy has written this file meanwhile");
    let file = parent.open_existing(name)?.ok_or_else(changed)?;
    try_lock(&file)?;
    if Identity::of(&fstat(&file)?) == *identity { Ok(file) } else { Err(changed()) }
}

/// The name of an incomplete copy. A name that would become too long is replaced by its hash.
pub(super) fn partial_name(name: &[u8]) -> Vec<u8> {
    let with_name = [&b"."[..], name, PARTIAL].concat();
    if with_name.len() <= MAX_NAME {
        return with_name;
    }
    let digest = blake3::hash(name).to_hex();
    [&b"."[..], digest.as_bytes(), PARTIAL].concat()
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

/// An incomplete copy of this user's that nobody else is writing. Anything else of that name
/// is removed.
pub(super) fn find(
    session: &Session,
    parent: &SharedDirectory,
    name: &[u8],
) -> io::Result<Option<File>> {
    let until = clock::now() + LOCK;
    loop {
        let stat = match parent.stat(name) {
            Ok(stat) => stat,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // A hard link may be to somebody's file.
        let is_ours = is_file(&stat) && stat.st_nlink == 1 && stat.st_uid == geteuid().as_raw();
        if !is_ours {
            parent.remove(name)?;
            return Ok(None);
        }
        let Some(file) = parent.open_existing(name)? else { continue };
        match try_lock(&file) {
            Ok(()) => {}
            // The far end of a copy that was interrupted may not know it yet.
            Err(_) if clock::now() < until => {
                session.check().map_err(io::Error::other)?;
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
            Err(error) => return Err(error),
        }
        // Meanwhile another copy may have completed the file and given it its name.
        let opened = fstat(&file)?;
        let is_same = parent.stat(name).is_ok_and(|named| {
            (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino)
                && opened.st_nlink == 1
                && opened.st_uid == stat.st_uid
                && is_file(&opened)
        });
        if is_same {
            return Ok(Some(file));
        }
    }
}

pub(super) fn try_lock(file: &File) -> io::Result<()> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        if error == rustix::io::Errno::WOULDBLOCK {
            io::Error::other("another copy is writing this file")
        } else {
            error.into()
        }
    })
}

/// Makes a range a hole, or zeros where the file system has no holes.
pub(super) fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if fallocate(file, flags, offset, length).is_ok() {
        return Ok(());
    }
    let zeros = vec![0; BLOCK_BYTES];
    let mut at = offset;
    while at < offset + length {
        let count = usize::try_from(offset + length - at).unwrap_or(BLOCK_BYTES).min(BLOCK_BYTES);
        file.write_all_at(&zeros[..count], at)?;
        at += count as u64;
    }
    Ok(())
}
