//! Whether a call may go on that names the other end of what is sent.

use std::net::SocketAddr;
use std::panic;

use serde::Serialize;
use windtunnel_notification::process::{read_words, try_address};
use windtunnel_sys::seccomp::Notification;
use windtunnel_sys::seccomp::filter::number;

use crate::limit::destination::AllowedDestination;

/// What judges destinations.
#[derive(Debug)]
pub(crate) struct DestinationPolicy {
    allowed: Vec<AllowedDestination>,
    refused: RefusedDestinations,
}

/// What was refused.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RefusedDestinations {
    /// Calls.
    pub count: u64,
    /// Of these, calls whose destination could not be looked at.
    pub hidden: u64,
    /// The first destinations, each once.
    pub first: Vec<SocketAddr>,
}

/// Where a call sends to.
enum CallDestination {
    /// Nowhere that is an address of the Internet's protocols.
    Nothing,
    Address(SocketAddr),
    /// It cannot be looked at.
    Hidden,
}

impl DestinationPolicy {
    pub(crate) fn of(allowed: Vec<AllowedDestination>) -> DestinationPolicy {
        DestinationPolicy { allowed, refused: RefusedDestinations::default() }
    }

    /// Whether a call may go on. One whose destination cannot be looked at may not.
    pub(super) fn allows(&mut self, shown: &Notification) -> bool {
        // Looking that panics is as what cannot be read.
        let named = panic::catch_unwind(|| named(shown));
        for named in named.unwrap_or_else(|_| vec![CallDestination::Hidden]) {
            match named {
                CallDestination::Nothing => {}
                CallDestination::Address(address) if self.contains(address) => {}
                CallDestination::Address(address) => return self.refuse(Some(address)),
                CallDestination::Hidden => return self.refuse(None),
            }
        }
        true
    }

    pub(super) fn refused(self) -> RefusedDestinations {
        self.refused
    }

    fn contains(&self, address: SocketAddr) -> bool {
        self.allowed.iter().any(|destination| destination.contains(address))
    }

    fn refuse(&mut self, address: Option<SocketAddr>) -> bool {
        let RefusedDestinations { count, hidden, first } = &mut self.refused;
        *count += 1;
        match address {
            None => *hidden += 1,
            Some(address) if first.len() < NAMED_MAX && !first.contains(&address) => {
                first.push(address);
            }
            Some(_) => {}
        }
        false
    }
}

/// The destinations of a call, as the kernel will read them.
fn named(shown: &Notification) -> Vec<CallDestination> {
    let [_, second, third, _, fifth, sixth] = shown.arguments;
    match shown.call {
        // `AF_UNSPEC` ends a connection.
        number::CONNECT => vec![address(shown, second, third, false)],
        number::SENDTO => vec![address(shown, fifth, sixth, true)],
        number::SENDMSG => vec![header(shown, &read_words(shown.thread, second, 2))],
        number::SENDMMSG => {
            let count = usize::try_from(third & u64::from(u32::MAX)).unwrap_or(usize::MAX);
            let count = count.min(MESSAGES_MAX);
            let words = read_words(shown.thread, second, count * MESSAGE_WORDS);
            let read = words.chunks_exact(MESSAGE_WORDS).map(|it| header(shown, &it[..2]));
            let hidden = (words.len() < count * MESSAGE_WORDS).then_some(CallDestination::Hidden);
            read.chain(hidden).collect()
        }
        _ => Vec::new(),
    }
}

/// The beginning of `struct msghdr`: an address and its length.
fn header(shown: &Notification, words: &[u64]) -> CallDestination {
    match words {
        [at, length] => address(shown, *at, length & u64::from(u32::MAX), true),
        _ => CallDestination::Hidden,
    }
}

/// `sends`: the kernel takes an address of no family for one of IPv4 (`udp_sendmsg`).
fn address(shown: &Notification, at: u64, length: u64, sends: bool) -> CallDestination {
    if at == 0 || (length & u64::from(u32::MAX)) == 0 {
        return CallDestination::Nothing;
    }
    match try_address(shown.thread, at, length & u64::from(u32::MAX), sends) {
        Ok(Some(address)) => CallDestination::Address(address),
        Ok(None) => CallDestination::Nothing,
        Err(_) => CallDestination::Hidden,
    }
}

/// `struct mmsghdr` in words.
const MESSAGE_WORDS: usize = 8;
/// `UIO_MAXIOV`, the kernel's own bound.
const MESSAGES_MAX: usize = 1024;
const NAMED_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of this thread, whose memory is its own.
    fn call(call: u32, arguments: [u64; 6]) -> Notification {
        let thread = windtunnel_sys::limits::current_thread().as_raw_nonzero().get();
        Notification { id: 1, thread, call, arguments }
    }

    /// `struct sockaddr_in`.
    fn v4(family: u16, ip: [u8; 4], port: u16) -> Vec<u8> {
        let [high, low] = port.to_be_bytes();
        let head = [family.to_ne_bytes().to_vec(), vec![high, low], ip.to_vec()];
        [head.concat(), vec![0; 8]].concat()
    }

    fn at(bytes: &[u8]) -> u64 {
        bytes.as_ptr() as u64
    }

    fn judge() -> DestinationPolicy {
        DestinationPolicy::of(vec!["10.0.0.0/8".parse().unwrap()])
    }

    #[test]
    fn each_form_of_a_call_is_judged_by_the_address_that_it_names() {
        let (good, bad) = (v4(2, [10, 1, 2, 3], 80), v4(2, [192, 0, 2, 1], 80));
        let (no_family, local) = (v4(0, [192, 0, 2, 1], 80), v4(1, [b'/', b'x', 0, 0], 0));
        let mut judge = judge();
        let mut allows = |number: u32, arguments| judge.allows(&call(number, arguments));
        for (bytes, is_allowed) in
            [(&good, true), (&bad, false), (&local, true), (&no_family, true)]
        {
            let arguments = [3, at(bytes), 16, 0, 0, 0];
            assert_eq!(allows(number::CONNECT, arguments), is_allowed, "{bytes:?}");
        }
        for (bytes, is_allowed) in [(&good, true), (&bad, false), (&no_family, false)] {
            assert_eq!(allows(number::SENDTO, [3, 1, 1, 0, at(bytes), 16]), is_allowed);
            let message = [at(bytes), 16, 0, 0, 0, 0, 0, 0_u64];
            let arguments = [3, message.as_ptr() as u64, 0, 0, 0, 0];
            assert_eq!(allows(number::SENDMSG, arguments), is_allowed);
            // The last of several is judged as the first.
            let none = [0_u64; MESSAGE_WORDS];
            let messages = [none, message].concat();
            let arguments = [3, messages.as_ptr() as u64, 2, 0, 0, 0];
            assert_eq!(allows(number::SENDMMSG, arguments), is_allowed);
        }
        assert!(allows(number::SENDTO, [3, 1, 1, 0, 0, 0]));
        let refused = judge.refused();
        assert_eq!((refused.count, refused.hidden), (7, 0));
        assert_eq!(refused.first, ["192.0.2.1:80".parse().unwrap()]);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        let mut judge = judge();
        assert!(!judge.allows(&call(number::CONNECT, [3, 8, 16, 0, 0, 0])));
        assert!(!judge.allows(&call(number::SENDMSG, [3, 8, 0, 0, 0, 0])));
        assert_eq!(judge.refused().hidden, 2);
    }
}
