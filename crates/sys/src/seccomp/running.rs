//! Filters for processes that run already. As no filter can be taken back, these refuse nothing by
//! themselves: what other filters refuse they show, so that a supervisor which lets all calls go on
//! leaves a program as it was.

use super::filter::{self, Instruction, number};
use super::{Notification, SeccompFilterKind};

/// A filter for a process that runs already. `confines`: it shows the ways to send that
/// [`SeccompFilterKind::Destinations`] does not, too.
#[must_use]
pub fn filter_for(filter: SeccompFilterKind, confines: bool) -> Vec<Instruction> {
    let mut whole = shown(&filter::refusals());
    if confines {
        whole.extend(shown(&filter::other_ways()));
    }
    match filter {
        SeccompFilterKind::Bytes => whole.extend(filter::program()),
        SeccompFilterKind::Destinations => whole.extend(filter::destinations()),
    }
    whole
}

/// The errno with which a call fails that the kernel refuses to programs under a limit from their
/// beginning on ([`super::refuse_hidden_ways`], and if it `confines` [`super::refuse_other_ways`]).
#[must_use]
pub fn refusal_of(shown: &Notification, confines: bool) -> Option<i32> {
    let [first, second, third, ..] = shown.arguments.map(|argument| argument & LOW_HALF);
    match shown.call {
        number::IO_URING_SETUP => Some(libc::ENOSYS),
        number::SOCKET if third == MPTCP => Some(libc::EPROTONOSUPPORT),
        number::SOCKET if confines && first == u64::from(filter::AF_PACKET) => Some(libc::EACCES),
        number::SETSOCKOPT if confines && second == u64::from(filter::SOL_SCTP) => {
            Some(libc::EACCES)
        }
        filter::OTHER_SOCKETCALL | filter::OTHER_SOCKET | filter::X32.. if confines => {
            Some(libc::EACCES)
        }
        _ => None,
    }
}

/// A filter that shows what another refuses, and for all else goes on behind itself.
fn shown(program: &[Instruction]) -> Vec<Instruction> {
    let length = u32::try_from(program.len()).unwrap_or(u32::MAX);
    let each = program.iter().zip(0..);
    let behind = |at: u32| Instruction { code: JUMP, then: 0, or_else: 0, value: length - 1 - at };
    each.map(|(step, at)| match step.value {
        _ if step.code != filter::RETURN => *step,
        filter::RET_ALLOW => behind(at),
        _ => Instruction { value: filter::RET_USER_NOTIF, ..*step },
    })
    .collect()
}

/// BPF_JMP | BPF_JA.
const JUMP: u16 = 0x05;
const LOW_HALF: u64 = 0xffff_ffff;
const MPTCP: u64 = filter::IPPROTO_MPTCP as u64;

#[cfg(test)]
mod tests {
    use super::super::tests::answer;
    use super::*;

    const ALLOW: u32 = 0x7fff_0000;
    const NOTIFY: u32 = 0x7fc0_0000;
    const HERE: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };

    #[test]
    fn what_is_refused_from_the_beginning_is_shown_and_what_is_shown_stays_so() {
        let verdict = |filter, confines, call, argument| {
            answer(&filter_for(filter, confines), HERE, call, argument)
        };
        for filter in [SeccompFilterKind::Bytes, SeccompFilterKind::Destinations] {
            for confines in [false, true] {
                assert_eq!(verdict(filter, confines, number::IO_URING_SETUP, 0), NOTIFY);
                assert_eq!(verdict(filter, confines, number::SOCKET, 262), NOTIFY);
                assert_eq!(verdict(filter, confines, number::SOCKET, 6), ALLOW);
                assert_eq!(verdict(filter, confines, number::CONNECT, 7), NOTIFY);
                let packets = if confines { NOTIFY } else { ALLOW };
                assert_eq!(verdict(filter, confines, number::SOCKET, 17), packets);
                assert_eq!(verdict(filter, confines, number::SETSOCKOPT, 132), packets);
                let whole = filter_for(filter, confines);
                assert_eq!(answer(&whole, 0x4000_0003, 102, 0), packets);
                assert_eq!(answer(&whole, 0x4000_0003, number::READ, 0), ALLOW);
            }
        }
        assert_eq!(verdict(SeccompFilterKind::Bytes, true, number::READ, 0), NOTIFY);
        assert_eq!(verdict(SeccompFilterKind::Destinations, true, number::READ, 0), ALLOW);
        assert_eq!(verdict(SeccompFilterKind::Destinations, false, number::SENDTO, 64), NOTIFY);
    }

    #[test]
    fn a_call_fails_as_it_does_under_a_filter_from_the_beginning() {
        let refusal = |call, arguments, confines| {
            refusal_of(&Notification { id: 1, thread: 1, call, arguments }, confines)
        };
        assert_eq!(refusal(number::IO_URING_SETUP, [1; 6], false), Some(38));
        assert_eq!(refusal(number::SOCKET, [2, 1, 262, 0, 0, 0], false), Some(93));
        assert_eq!(refusal(number::SOCKET, [17, 3, 0, 0, 0, 0], true), Some(13));
        assert_eq!(refusal(number::SOCKET, [17, 3, 0, 0, 0, 0], false), None);
        assert_eq!(refusal(number::SETSOCKOPT, [3, 132, 0, 0, 0, 0], true), Some(13));
        assert_eq!(refusal(102, [1; 6], true), Some(13));
        assert_eq!(refusal(0x4000_0001, [1; 6], true), Some(13));
        assert_eq!(refusal(number::READ, [3; 6], true), None);
    }

    #[test]
    fn a_supervisor_refuses_what_the_filters_refuse_and_by_the_same_errno() {
        let (refusals, other_ways) = (filter::refusals(), filter::other_ways());
        let calls = [number::IO_URING_SETUP, number::SOCKET, number::SETSOCKOPT, number::READ];
        for (call, argument) in
            calls.into_iter().flat_map(|it| [0, 6, 17, 132, 262].map(|argument| (it, argument)))
        {
            for confines in [false, true] {
                let first = answer(&refusals, HERE, call, argument);
                let second = answer(&other_ways, HERE, call, argument);
                let refused = [Some(first), confines.then_some(second)].into_iter().flatten();
                let errno =
                    refused.filter(|it| *it != ALLOW).map(|it| (it & 0xffff).cast_signed()).next();
                let arguments = [u64::from(argument); 6];
                let shown = Notification { id: 1, thread: 1, call, arguments };
                assert_eq!(refusal_of(&shown, confines), errno, "{call} {argument} {confines}");
            }
        }
    }
}
