//! What travels back.

use std::rc::Rc;
use tcp::{Acknowledgement, PacketRun, SackBlocks};
use units::{Nanos, WindowChange};

/// An acknowledgement on its way, half as large as it is while nothing is lost.
#[derive(Debug, Clone)]
pub(crate) struct Backward {
    pub(crate) connection: u32,
    next: u64,
    window: u64,
    marked: u64,
    sent: Nanos,
    echo: Nanos,
    reports: Option<Rc<Reports>>,
}

/// What it says of losses, duplicates and routers.
#[derive(Debug)]
struct Reports {
    sacks: SackBlocks,
    duplicate: PacketRun,
    granted: WindowChange,
}

impl Backward {
    pub(crate) fn new(connection: u32, acknowledgement: &Acknowledgement) -> Self {
        let &Acknowledgement { next, window, sacks, duplicate, marked, granted, sent, echo } =
            acknowledgement;
        let plain =
            sacks.as_slice().is_empty() && duplicate.is_empty() && granted == WindowChange::NONE;
        let reports = (!plain).then(|| Rc::new(Reports { sacks, duplicate, granted }));
        Backward { connection, next, window, marked, sent, echo, reports }
    }

    pub(crate) fn acknowledgement(&self) -> Acknowledgement {
        let reports = self.reports.as_deref();
        Acknowledgement {
            next: self.next,
            window: self.window,
            sacks: reports.map_or_else(SackBlocks::default, |reports| reports.sacks),
            duplicate: reports.map_or_else(PacketRun::default, |reports| reports.duplicate),
            marked: self.marked,
            granted: reports.map_or(WindowChange::NONE, |reports| reports.granted),
            sent: self.sent,
            echo: self.echo,
        }
    }
}
