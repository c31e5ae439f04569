//! The limits of this process, as `ulimit` sets them: what is too little for windtunnel is an error
//! before anything is begun, and what ends something later is named.

use std::any::Any;

use windtunnel_sys::limits::ProcessResourceLimitKind;
use windtunnel_sys::process::Signal;
use windtunnel_sys::signal;

use crate::exit::ExitCategory;
use crate::failure::VerbFailure;

/// A limit with a letter of `ulimit`, which sets it in units of 1024 bytes.
#[derive(Debug, Clone, Copy)]
struct UlimitResource {
    which: ProcessResourceLimitKind,
    letter: char,
    what: &'static str,
}

/// Has a write beyond `ulimit -f` fail with an error, in place of the end of the process by SIGXFSZ
/// (setrlimit(2)).
pub(crate) fn outlive_large_files() {
    // Only SIGKILL and SIGSTOP cannot be ignored.
    let _ = signal::ignore(Signal::XFSZ);
}

/// Why nothing can be done under the limits of this process.
pub(crate) fn refusal() -> Option<VerbFailure> {
    [(STACK, STACK_MIN), (ADDRESS_SPACE, ADDRESS_SPACE_MIN)]
        .into_iter()
        .find_map(|(limited, least)| limited.refusal(limited.which.limit().soft, least))
}

/// The failure that a panic stands for, where it does: the standard library panics where a thread
/// cannot be started.
pub(crate) fn of_panic(payload: &dyn Any) -> Option<VerbFailure> {
    let text = payload.downcast_ref::<String>()?;
    let why = text.strip_prefix("failed to spawn thread: ")?;
    let message = format!("cannot start one more thread: {why}");
    let own = ADDRESS_SPACE.hint().or_else(|| DATA.hint());
    let other = "the limit of threads is reached: raise it with `ulimit -u`".to_owned();
    Some(VerbFailure::new(ExitCategory::Machine, message).hint(own.unwrap_or(other)))
}

/// The failure, with the limit that it comes of as its hint, where it comes of one.
pub(crate) fn explained(failure: VerbFailure) -> VerbFailure {
    let causes = failure.causes();
    let is = |number: i32| causes.contains(&format!("(os error {number})"));
    let hint = if is(EFBIG) {
        FILE_SIZE.hint()
    } else if is(ENOMEM) || is(EAGAIN) {
        ADDRESS_SPACE.hint().or_else(|| DATA.hint())
    } else {
        None
    };
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

impl UlimitResource {
    /// With `soft` as the limit, where that is less than `least`.
    fn refusal(self, soft: Option<u64>, least: u64) -> Option<VerbFailure> {
        let UlimitResource { letter, what, .. } = self;
        let soft = soft.filter(|soft| *soft < least)?;
        let [has, needs] = [soft, least].map(|bytes| bytes / 1024);
        let message =
            format!("this process may have {has} KiB {what}, and windtunnel needs {needs} KiB");
        let hint = format!("raise the limit: `ulimit -{letter} {needs}` or more");
        Some(VerbFailure::new(ExitCategory::Machine, message).hint(hint))
    }

    /// Says that there is the limit, if there is.
    fn hint(self) -> Option<String> {
        let UlimitResource { which, letter, what } = self;
        let soft = which.limit().soft? / 1024;
        Some(format!(
            "this process may have {soft} KiB {what}: raise the limit with `ulimit -{letter}`"
        ))
    }
}

const STACK: UlimitResource =
    UlimitResource { which: ProcessResourceLimitKind::Stack, letter: 's', what: "of stack" };
const ADDRESS_SPACE: UlimitResource = UlimitResource {
    which: ProcessResourceLimitKind::AddressSpace,
    letter: 'v',
    what: "of address space",
};
const DATA: UlimitResource =
    UlimitResource { which: ProcessResourceLimitKind::Data, letter: 'd', what: "of memory" };
const FILE_SIZE: UlimitResource =
    UlimitResource { which: ProcessResourceLimitKind::FileSize, letter: 'f', what: "in a file" };

/// Twice what reading a command line was seen to need without optimisation.
const STACK_MIN: u64 = 512 << 10;
/// More than twice what a run of two nodes was seen to need: the program itself, the stacks of its
/// threads, and what the allocator sets aside for each.
const ADDRESS_SPACE_MIN: u64 = 256 << 20;

/// errno(3).
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const EFBIG: i32 = 27;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_below_the_need_is_refused_with_the_command_that_raises_it() {
        let failure = STACK.refusal(Some(64 << 10), STACK_MIN).unwrap();
        assert_eq!(failure.code(), 4);
        assert_eq!(
            failure.text(),
            "error: this process may have 64 KiB of stack, and windtunnel needs 512 KiB\n\
             hint: raise the limit: `ulimit -s 512` or more"
        );
        assert!(STACK.refusal(Some(STACK_MIN), STACK_MIN).is_none());
        assert!(STACK.refusal(None, STACK_MIN).is_none(), "no limit");
    }

    #[test]
    fn a_panic_where_no_thread_can_start_is_the_machines() {
        let failure = of_panic(&"failed to spawn thread: it is busy".to_owned()).unwrap();
        let said = "cannot start one more thread: it is busy";
        assert_eq!((failure.code(), failure.causes().as_str()), (4, said));
        assert!(of_panic(&"index out of bounds".to_owned()).is_none());
    }
}
