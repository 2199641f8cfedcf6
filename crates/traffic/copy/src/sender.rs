//! The end that reads files: it lists them, learns what the receiver has, and sends the rest.

use crate::CopyError;
use crate::block_hashes::BlockHashes;
use crate::budget::{Budget, Share};
use crate::directory::{Directory, Links};
use crate::progress::Progress;
use crate::protocol::hash::{self, Hash, TreeHash};
use crate::protocol::message::{Entry, EntryKind, Message};
use crate::protocol::path::RelativePath;
use crate::protocol::{BLOCK_BYTES, block_bytes, block_count};
use crate::queue::Queue;
use crate::transport::{REPORT, Session};
use crate::walk::{Found, ParentDirectory, Source, modified, walk};
use host::clock;
use host::lock::lock;
use rustix::fs::{SeekFrom, fstat, seek};
use rustix::io::Errno;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Memory of the entries that the receiver has not answered, bytes: 8,192 entries, or fewer
/// with long paths.
const WINDOW_BYTES: usize = 8 << 20;
const ENTRY_BYTES: usize = 1 << 10;
/// Memory of the hashes of what the receiver has, bytes: those of 1 TB. Blocks whose hashes have
/// no room are sent although they are there.
const HAVE_BYTES: usize = 64 << 20;
/// Threads that read files.
const READERS: usize = 2;

/// A file's thread asks whether the copy goes on, each time it has read so many blocks.
pub(crate) const CHECK_BLOCKS: u64 = 64;

/// The beginning of a hash: which blocks the receiver has needs no more, as it verifies the
/// hash of the whole.
type ShortHash = [u8; 16];

/// An entry without an answer.
struct Outstanding {
    path: RelativePath,
    /// Its memory, which is its job's too: a receiver can answer before that is done.
    _memory: Arc<Share>,
    /// Until the receiver has said what it has of it.
    job: Option<Job>,
}

/// A file to send.
struct Job {
    id: u32,
    found: Found,
    bytes: u64,
    have: BlockHashes<ShortHash>,
    _memory: Arc<Share>,
}

struct Sender<'a> {
    session: &'a Session,
    progress: &'a Progress,
    outstanding: Mutex<HashMap<u32, Outstanding>>,
    /// Memory of them and of the jobs.
    window: Arc<Budget>,
    have: Arc<Budget>,
    jobs: Queue<Job>,
    is_listed: AtomicBool,
}

/// Sends sources and everything below them, until the receiver has answered each entry.
pub(crate) fn send(
    session: &Session,
    progress: &Progress,
    sources: Vec<Source>,
) -> Result<(), CopyError> {
    let sender = &Sender {
        session,
        progress,
        outstanding: Mutex::new(HashMap::new()),
        window: Budget::new(WINDOW_BYTES),
        have: Budget::new(HAVE_BYTES),
        jobs: Queue::new(usize::MAX),
        is_listed: AtomicBool::new(false),
    };
    let result = std::thread::scope(|scope| {
        scope.spawn(|| sender.fails(sender.list(sources)));
        for _ in 0..READERS {
            scope.spawn(|| sender.fails(sender.read_files()));
        }
        let result = sender.fails(sender.answers());
        sender.jobs.close();
        result
    });
    if result.is_ok() {
        session.finish_answered();
    } else {
        session.finish();
    }
    result
}

impl Sender<'_> {
    /// An error of one thread ends all of them.
    fn fails(&self, result: Result<(), CopyError>) -> Result<(), CopyError> {
        result.inspect_err(|error| {
            self.session.give_up(error.clone());
            self.jobs.close();
        })
    }

    fn list(&self, sources: Vec<Source>) -> Result<(), CopyError> {
        let mut id = 0;
        for source in sources {
            walk(
                source,
                |found| {
                    self.announce(id, found)?;
                    id += 1;
                    Ok(())
                },
                |skipped| {
                    self.progress.problem(skipped.clone());
                    self.session.send(&Message::Skipped(skipped))
                },
            )?;
        }
        self.progress.all_listed();
        self.is_listed.store(true, Ordering::Relaxed);
        self.session.send(&Message::AllEntries(id))
    }

    /// Memory for one more entry, once there is some.
    fn memory(&self, found: &Found) -> Result<Share, CopyError> {
        // It is kept in two places, and below its source.
        let bytes = (3 * found.path.bytes().len() + ENTRY_BYTES / 4).max(ENTRY_BYTES);
        loop {
            self.session.check()?;
            if let Some(share) = self.window.take_within(bytes, REPORT) {
                return Ok(share);
            }
        }
    }

    fn announce(&self, id: u32, found: Found) -> Result<(), CopyError> {
        let memory = Arc::new(self.memory(&found)?);
        let bytes = match found.kind {
            EntryKind::File(bytes) => bytes,
            _ => 0,
        };
        self.progress.listed(bytes);
        let path = found.path.clone();
        let entry = Message::Entry(Entry {
            id,
            path: path.clone(),
            kind: found.kind.clone(),
            mode: found.mode & 0o777,
            modified: found.modified,
        });
        let is_file = matches!(found.kind, EntryKind::File(_));
        let have = self.have.take(0).filter(|_| is_file);
        let job = have.map(|share| {
            let have = BlockHashes::new(share, HAVE_BYTES);
            Job { id, found, bytes, have, _memory: Arc::clone(&memory) }
        });
        lock(&self.outstanding).insert(id, Outstanding { path, _memory: memory, job });
        self.session.send(&entry)
    }

    /// What the receiver answers, until it has answered everything.
    fn answers(&self) -> Result<(), CopyError> {
        let mut reported = clock::now();
        loop {
            if reported.elapsed() >= REPORT {
                reported = clock::now();
                let sent = self.progress.figures().bytes;
                self.session.report(sent, self.session.waits().1);
            }
            let message = match self.session.receive_within(REPORT)? {
                Some(message) => message,
                None if self.session.is_over() => {
                    return Err(CopyError::Connection("the peer closed it".into()));
                }
                None => continue,
            };
            match message {
                Message::Have { id, first, hashes, is_last } => {
                    self.on_have(id, first, &hashes, is_last)?;
                }
                Message::Stored(id) => {
                    self.take(id)?;
                    self.progress.stored();
                }
                Message::NotStored { id, reason } => {
                    let path = self.take(id)?;
                    self.progress.problem(format!("{path}: {reason}"));
                }
                Message::Progress { written, waited } => {
                    self.progress.written(written);
                    self.progress.waited(waited);
                }
                // The client does not wait for it: that would take a round trip.
                Message::Accepted => {}
                Message::CarryDataOver(carrier) => self.session.data_path().use_only(carrier),
                Message::Refused(reason) => return Err(CopyError::Refused(reason)),
                Message::Finished if self.is_answered() => return Ok(()),
                _ => return Err(unexpected()),
            }
        }
    }

    fn take(&self, id: u32) -> Result<RelativePath, CopyError> {
        let outstanding = lock(&self.outstanding).remove(&id).ok_or_else(unexpected)?;
        Ok(outstanding.path)
    }

    fn is_answered(&self) -> bool {
        self.is_listed.load(Ordering::Relaxed) && lock(&self.outstanding).is_empty()
    }

    fn on_have(
        &self,
        id: u32,
        first: u64,
        hashes: &[Hash],
        is_last: bool,
    ) -> Result<(), CopyError> {
        let mut all = lock(&self.outstanding);
        let job = &mut all.get_mut(&id).ok_or_else(unexpected)?.job;
        let Some(known) = job else { return Err(unexpected()) };
        let end = first.checked_add(hashes.len() as u64);
        let is_in_order = hashes.is_empty() || first >= known.have.end();
        if !is_in_order || end.is_none_or(|end| end > block_count(known.bytes)) {
            return Err(unexpected());
        }
        known.have.push(first, hashes.iter().map(short).collect());
        if is_last && let Some(job) = job.take() {
            drop(all);
            let _ = self.jobs.force(job, 1);
        }
        Ok(())
    }

    fn read_files(&self) -> Result<(), CopyError> {
        let (mut buffer, mut parent) = (vec![0; BLOCK_BYTES], None);
        while !self.jobs.is_over() {
            let Some(job) = self.jobs.pop(Duration::from_secs(1)) else { continue };
            let (id, _reading) = (job.id, self.session.reading());
            let message = match self.send_blocks(&job, &mut parent, &mut buffer) {
                Ok(hash) => Message::End { id, hash },
                Err(NotSent::Session(error)) => return Err(error),
                Err(NotSent::File(error)) => Message::Unreadable { id, reason: error.to_string() },
            };
            self.session.send(&message)?;
        }
        Ok(())
    }

    fn send_blocks(
        &self,
        job: &Job,
        parent: &mut LastParent,
        buffer: &mut [u8],
    ) -> Result<Hash, NotSent> {
        let parent = opened(&job.found.source.parent, parent)?;
        let file = parent.read(&job.found.disk_path, Links::Refuse)?;
        let stored = check_unchanged(&file, job)?;
        let mut tree = TreeHash::new(job.bytes);
        let mut extents = if stored >= job.bytes { Extents::whole() } else { Extents::default() };
        let mut run = Run { sender: self, id: job.id, is_hole: false, first: 0, count: 0 };
        for index in 0..block_count(job.bytes) {
            if index % CHECK_BLOCKS == 0 {
                self.session.check()?;
            }
            let block = &mut buffer[..block_bytes(job.bytes, index)];
            let begin = index * BLOCK_BYTES as u64;
            let is_hole = extents.is_hole(&file, begin, begin + block.len() as u64);
            if is_hole {
                block.fill(0);
            } else {
                file.read_exact_at(block, begin).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => changed(),
                    _ => NotSent::File(error),
                })?;
            }
            let hash = hash::of_block(job.bytes, index, block);
            tree.insert(index, hash).map_err(|error| io::Error::other(error.to_string()))?;
            let is_kept = job.have.get(index) == Some(short(&hash));
            if is_kept || is_hole {
                self.progress.kept(block.len() as u64);
                run.add(index, !is_kept)?;
                continue;
            }
            run.end()?;
            self.progress.carried(block.len() as u64);
            let data = Message::Data { id: job.id, block: index, bytes: block.to_vec() };
            self.session.send_data(&data)?;
        }
        run.end()?;
        check_unchanged(&file, job)?;
        tree.root().ok_or_else(changed)
    }
}

/// The directory of a thread's last source: the next one is often in it.
type LastParent = Option<(Arc<ParentDirectory>, Arc<Directory>)>;

fn opened(parent: &Arc<ParentDirectory>, last: &mut LastParent) -> io::Result<Arc<Directory>> {
    if let Some((known, directory)) = last
        && Arc::ptr_eq(known, parent)
    {
        return Ok(Arc::clone(directory));
    }
    let directory = parent.open()?;
    *last = Some((Arc::clone(parent), Arc::clone(&directory)));
    Ok(directory)
}

/// The reason a file was not sent.
enum NotSent {
    /// It could not be read.
    File(io::Error),
    /// Nothing can be sent any more.
    Session(CopyError),
}

impl From<io::Error> for NotSent {
    fn from(error: io::Error) -> Self {
        NotSent::File(error)
    }
}

impl From<CopyError> for NotSent {
    fn from(error: CopyError) -> Self {
        NotSent::Session(error)
    }
}

fn short(hash: &Hash) -> ShortHash {
    std::array::from_fn(|at| hash[at])
}

fn unexpected() -> CopyError {
    CopyError::Protocol("an unexpected message".into())
}

fn changed() -> NotSent {
    NotSent::File(io::Error::other("it changed while it was read; copy it again"))
}

/// Gives the bytes that the file takes on the disk.
fn check_unchanged(file: &File, job: &Job) -> Result<u64, NotSent> {
    let stat = fstat(file).map_err(io::Error::from)?;
    let is_same =
        u64::try_from(stat.st_size) == Ok(job.bytes) && modified(&stat) == job.found.modified;
    /// Unit of `st_blocks`, bytes (stat(3type)).
    const UNIT: u64 = 512;
    let stored = u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(UNIT);
    if is_same { Ok(stored) } else { Err(changed()) }
}

/// Blocks in a row that need no data.
struct Run<'a> {
    sender: &'a Sender<'a>,
    id: u32,
    is_hole: bool,
    first: u64,
    count: u64,
}

impl Run<'_> {
    fn add(&mut self, index: u64, is_hole: bool) -> Result<(), CopyError> {
        if self.count > 0 && self.is_hole != is_hole {
            self.end()?;
        }
        if self.count == 0 {
            (self.first, self.is_hole) = (index, is_hole);
        }
        self.count += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), CopyError> {
        let (id, first, count) = (self.id, self.first, std::mem::take(&mut self.count));
        match (count, self.is_hole) {
            (0, _) => Ok(()),
            // Behind the data that was read before it.
            (_, true) => self.sender.session.send_data(&Message::Hole { id, first, count }),
            (_, false) => self.sender.session.send_data(&Message::Kept { id, first, count }),
        }
    }
}

/// Where a file has data (lseek(2), `SEEK_DATA`), asked for as it is read.
#[derive(Default)]
pub(crate) struct Extents {
    /// The extent found last: its first byte, and the first behind it.
    data: Option<(u64, u64)>,
}

impl Extents {
    /// Of a file without holes.
    fn whole() -> Self {
        Extents { data: Some((0, u64::MAX)) }
    }

    /// Returns true if nothing from `begin` to `end` is stored. Ranges are asked for in order.
    pub(crate) fn is_hole(&mut self, file: &File, begin: u64, end: u64) -> bool {
        if self.data.is_none_or(|(_, behind)| behind <= begin) {
            self.data = Some(match seek(file, SeekFrom::Data(begin)) {
                Ok(data) => (data, seek(file, SeekFrom::Hole(data)).unwrap_or(u64::MAX)),
                Err(Errno::NXIO) => (u64::MAX, u64::MAX),
                // The file system cannot say.
                Err(_) => (0, u64::MAX),
            });
        }
        self.data.is_some_and(|(data, _)| data >= end)
    }
}
