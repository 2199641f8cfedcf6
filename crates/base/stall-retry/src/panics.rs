//! Which assertion failed.

use crate::Reason;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    /// File, line and column of this thread's last panic.
    static LOCATION: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// A failed attempt.
pub(crate) struct Failure {
    pub(crate) payload: Box<dyn Any + Send>,
    /// The source location of the panic. Where the panic began in another
    /// thread and was resumed here: its message, with every number masked.
    pub(crate) assertion: String,
}

impl Failure {
    /// The first line of the panic's message.
    pub(crate) fn message(&self) -> &str {
        first_line(&*self.payload)
    }
}

/// Runs a test once.
pub(crate) fn attempt(test: &impl Fn()) -> Result<(), Failure> {
    record_locations();
    LOCATION.with(|location| location.borrow_mut().take());
    catch_unwind(AssertUnwindSafe(test)).map_err(|payload| {
        let location = LOCATION.with(|location| location.borrow_mut().take());
        let assertion = location.unwrap_or_else(|| masked(first_line(&*payload)));
        Failure { payload, assertion }
    })
}

/// Hooks into panics, once in the process: the location of a panic is known
/// only there. The earlier hook still prints them.
fn record_locations() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let earlier = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if let Some(at) = info.location() {
                LOCATION.with(|location| *location.borrow_mut() = Some(at.to_string()));
            }
            // An undecided test is reported with its reason, not as a panic.
            if !info.payload().is::<Reason>() {
                earlier(info);
            }
        }));
    });
}

fn first_line(payload: &(dyn Any + Send)) -> &str {
    let whole = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    whole.and_then(|text| text.lines().next()).unwrap_or("it failed")
}

/// `text` without its digits.
fn masked(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assertion(test: impl Fn()) -> String {
        attempt(&test).err().unwrap().assertion
    }

    #[test]
    fn an_assertion_is_known_by_its_place() {
        let fails = |n: u32| move || assert_eq!(n, 0, "{n}");
        assert_eq!(assertion(fails(1)), assertion(fails(2)));
        assert!(assertion(fails(1)).contains("panics.rs:"));
        assert_ne!(assertion(fails(1)), assertion(|| panic!("1")));
    }

    #[test]
    fn one_of_another_thread_is_known_by_its_words() {
        let fails = |n: u32| {
            move || {
                let thread = std::thread::spawn(move || panic!("{n} of 10 arrived"));
                let joined: std::thread::Result<()> = thread.join();
                if let Err(payload) = joined {
                    panic::resume_unwind(payload);
                }
            }
        };
        assert_eq!(assertion(fails(1)), " of  arrived");
        assert_eq!(assertion(fails(1)), assertion(fails(22)));
    }
}
