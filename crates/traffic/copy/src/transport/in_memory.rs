//! The peer's end of a session without a connection.

use super::Session;
use super::pump::MESSAGE_COST;
use crate::CopyError;
use crate::protocol::frame::{self, Decoder};
use crate::protocol::message::Message;
use host::clock;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

const STEP: Duration = Duration::from_millis(1);

/// A peer that sends any messages. Its own are decoded from their frames, as if they had come
/// over a connection.
#[derive(Debug)]
pub struct Peer<'a> {
    session: &'a Session,
    decoder: RefCell<Decoder>,
    received: RefCell<VecDeque<Message>>,
}

impl<'a> Peer<'a> {
    pub(crate) fn new(session: &'a Session) -> Self {
        let (decoder, received) = (RefCell::default(), RefCell::default());
        Peer { session, decoder, received }
    }

    /// Sends a message, as soon as there is room for it. False if the other end has given up.
    pub fn send(&self, message: &Message) -> bool {
        let frame = frame::encode(message);
        let mut decoder = Decoder::default();
        decoder.push(&frame);
        let mut message = match decoder.next_message() {
            Ok(Some(message)) => message,
            Ok(None) => return true,
            Err(error) => {
                self.session.fail(CopyError::Protocol(error.to_string()));
                return false;
            }
        };
        let cost = frame.len() + MESSAGE_COST;
        loop {
            self.take();
            if self.session.failure().is_some() {
                return false;
            }
            match self.session.incoming.push_within(message, cost, STEP) {
                Ok(None) => return true,
                Ok(Some(back)) => message = back,
                Err(_) => return false,
            }
        }
    }

    /// The next message of the other end, if one comes within that time.
    #[must_use]
    pub fn receive(&self, time: Duration) -> Option<Message> {
        let until = clock::now() + time;
        loop {
            self.take();
            let message = self.received.borrow_mut().pop_front();
            let is_over = self.session.control.is_over() && self.session.data.is_over();
            if message.is_some() || is_over || clock::now() >= until {
                return message;
            }
            std::thread::sleep(STEP / 10);
        }
    }

    /// Takes what the other end has sent.
    fn take(&self) {
        let mut decoder = self.decoder.borrow_mut();
        while let Some(frame) =
            self.session.control.try_pop().or_else(|| self.session.data.try_pop())
        {
            decoder.push(&frame);
            if let Ok(Some(message)) = decoder.next_message() {
                self.received.borrow_mut().push_back(message);
            }
        }
    }

    /// Forgets what was received so far.
    pub fn forget(&self) {
        self.take();
        self.received.borrow_mut().clear();
    }

    /// Ends the connection. Without it, it stays open until the other end is done.
    pub fn close(&self) {
        self.session.incoming.finish();
    }

    /// Takes what comes until `is_done`, and ends the connection where the other end gave up.
    pub(crate) fn linger(&self, is_done: impl Fn() -> bool) {
        while !is_done() {
            self.forget();
            if self.session.failure().is_some() {
                self.close();
            }
            std::thread::sleep(STEP / 10);
        }
    }
}
