//! Symbolic links that are received.
//!
//! Of every link that copies into one directory create, the kernel finds what it leads to below
//! that directory, or nothing: in whatever order they are created, and whatever is created
//! later. [`RelativePath::contains_target`] says why, from the text of each alone. It rests on
//! two things. The parent of a link is no link, and no copy moves a directory or puts anything
//! else in its place. And the links that others made there do not lead out: a link that goes
//! through one that does is found here, by following it.

use crate::directory::{Directory, Links};
use crate::protocol::path::RelativePath;
use crate::receiver::partial::partial_name;
use crate::receiver::times;
use rustix::fs::{AtFlags, utimensat};
use std::io;

/// Creates a link, or replaces what is there, if it stays below `top`.
pub(super) fn make(
    top: &Directory,
    path: &RelativePath,
    target: &[u8],
    modified: (i64, u32),
) -> io::Result<()> {
    let leads_out = || {
        let target = String::from_utf8_lossy(target);
        io::Error::other(format!(
            "a symbolic link to {target} leads out of the copy, or may do so; it is not created"
        ))
    };
    if !path.contains_target(target) {
        return Err(leads_out());
    }
    let (parent_path, name) = path.split_last();
    let parent_path = parent_path.unwrap_or_default();
    let parent = top.directory(parent_path, Links::Refuse)?;
    let partial = partial_name(name);
    match parent.remove(&partial) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    parent.make_symlink(target, &partial)?;
    let finish = || -> io::Result<()> {
        let path = if parent_path.is_empty() {
            partial.clone()
        } else {
            [parent_path, &partial[..]].join(&b'/')
        };
        top.check_contains(&path).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => leads_out(),
            _ => error,
        })?;
        utimensat(&parent, &partial[..], &times(modified), AtFlags::SYMLINK_NOFOLLOW)?;
        parent.rename(&partial, name)
    };
    finish().inspect_err(|_| {
        let _ = parent.remove(&partial);
    })
}
