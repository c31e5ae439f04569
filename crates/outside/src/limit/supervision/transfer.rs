//! What a call would move, and through which descriptor.

use std::net::SocketAddr;

use windtunnel_budget::pacing::TransferDirection;
use windtunnel_notification::call::{InterceptedSystemCall, total};
use windtunnel_notification::process::{read_address, read_words};
use windtunnel_sys::seccomp::Notification;
use windtunnel_sys::seccomp::filter::number;

/// Bytes that a call would move through a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) descriptor: i32,
    pub(super) direction: TransferDirection,
    /// The most.
    pub(super) asked: u64,
    /// The call returns at once, whatever the socket says.
    pub(super) returns_at_once: bool,
    /// Nothing is taken from the socket.
    pub(super) only_looks: bool,
    /// The call takes what is outside the stream (`MSG_OOB`).
    pub(super) is_urgent: bool,
    /// The call takes several messages.
    pub(super) is_many: bool,
    /// Where the bytes come from, if not from memory.
    pub(super) source: Option<TransferSource>,
    /// The other end, of a message that names one.
    pub(super) to: Option<SocketAddr>,
}

/// A descriptor that bytes come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TransferSource {
    pub(super) descriptor: i32,
    /// Where the program says from which place of the file on; 0: from where the descriptor is.
    pub(super) place: u64,
}

impl Transfer {
    /// What a call would move: of one between two descriptors at most one is a socket.
    pub(super) fn all_of(shown: &Notification, what: InterceptedSystemCall) -> Vec<Transfer> {
        match what {
            InterceptedSystemCall::Transfer { descriptor, sends, asked, .. } => {
                let asked = if asked == 0 { messages(shown) } else { asked };
                vec![Transfer { to: receiver(shown), ..plain(shown, descriptor, sends, asked) }]
            }
            InterceptedSystemCall::Between { from, to: (_, to), asked } => {
                let [_, second, third, ..] = shown.arguments;
                let source = match from {
                    Some((_, descriptor)) => TransferSource { descriptor, place: second },
                    None => TransferSource { descriptor: low(second), place: third },
                };
                let sent = Transfer { source: Some(source), ..plain(shown, to, true, asked) };
                let received = from.map(|(_, from)| plain(shown, from, false, asked));
                [sent].into_iter().chain(received).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn plain(shown: &Notification, descriptor: i32, sends: bool, asked: u64) -> Transfer {
    let flags = flags(shown);
    Transfer {
        descriptor,
        direction: if sends { TransferDirection::Send } else { TransferDirection::Receive },
        asked,
        returns_at_once: flags & MSG_DONTWAIT != 0,
        only_looks: !sends && flags & (MSG_PEEK | MSG_ERRQUEUE) != 0,
        is_urgent: flags & MSG_OOB != 0,
        is_many: shown.call == number::RECVMMSG,
        source: None,
        to: None,
    }
}

/// The flags of send(2) and recv(2).
fn flags(shown: &Notification) -> u64 {
    let [_, _, third, fourth, _, sixth] = shown.arguments;
    match shown.call {
        number::SENDTO | number::RECVFROM | number::SENDMMSG | number::RECVMMSG => fourth,
        number::SENDMSG | number::RECVMSG => third,
        number::SPLICE if sixth & SPLICE_F_NONBLOCK != 0 => MSG_DONTWAIT,
        _ => 0,
    }
}

/// The bytes of all messages of sendmmsg(2) and recvmmsg(2).
fn messages(shown: &Notification) -> u64 {
    if !matches!(shown.call, number::SENDMMSG | number::RECVMMSG) {
        return 0;
    }
    let [_, address, count, ..] = shown.arguments;
    let most = usize::try_from(count.min(MESSAGES_MAX)).unwrap_or(0) * MESSAGE_WORDS;
    let words = read_words(shown.thread, address, most);
    let messages = words.chunks_exact(MESSAGE_WORDS);
    messages.fold(0, |sum, it| sum.saturating_add(total(shown.thread, it[2], it[3])))
}

/// The address to which a message goes that names one; of several messages, that of the first.
fn receiver(shown: &Notification) -> Option<SocketAddr> {
    let [_, message, _, _, address, length] = shown.arguments;
    let (address, length) = match shown.call {
        number::SENDTO => (address, length),
        number::SENDMSG | number::SENDMMSG => match read_words(shown.thread, message, 2)[..] {
            [address, length] => (address, length & u64::from(u32::MAX)),
            _ => return None,
        },
        _ => return None,
    };
    if address == 0 { None } else { read_address(shown.thread, address, length) }
}

/// The low half, as the kernel takes descriptors.
#[expect(clippy::cast_possible_truncation, reason = "so does the kernel")]
fn low(argument: u64) -> i32 {
    argument as i32
}

/// `struct mmsghdr`: an address and its length, buffers and their number, control data, its length,
/// flags, and how much was moved.
const MESSAGE_WORDS: usize = 8;
/// `UIO_MAXIOV`, the kernel's own bound.
const MESSAGES_MAX: u64 = 1024;
const MSG_OOB: u64 = 0x1;
const MSG_PEEK: u64 = 0x2;
const MSG_DONTWAIT: u64 = 0x40;
const MSG_ERRQUEUE: u64 = 0x2000;
const SPLICE_F_NONBLOCK: u64 = 0x2;

#[cfg(test)]
mod tests {
    use super::*;

    fn transfers(call: u32, arguments: [u64; 6]) -> Vec<Transfer> {
        let shown = Notification { id: 1, thread: 0, call, arguments };
        Transfer::all_of(&shown, InterceptedSystemCall::of(&shown))
    }

    #[test]
    fn flags_are_those_of_the_call() {
        let [sent] = transfers(number::SENDTO, [7, 0, 100, MSG_DONTWAIT, 0, 0])[..] else {
            panic!("one transfer");
        };
        assert_eq!(
            (sent.descriptor, sent.asked, sent.direction),
            (7, 100, TransferDirection::Send)
        );
        assert!(sent.returns_at_once && !sent.only_looks);
        let peeked = transfers(number::RECVFROM, [7, 0, 100, MSG_PEEK, 0, 0]);
        assert!(peeked[0].only_looks);
        // Those of read(2) are not flags.
        let read = transfers(number::READ, [7, 0, 100, MSG_PEEK | MSG_DONTWAIT, 0, 0]);
        assert!(!read[0].only_looks && !read[0].returns_at_once);
    }

    #[test]
    fn a_call_between_descriptors_may_send_by_one_and_receive_by_the_other() {
        let both = transfers(number::SPLICE, [5, 0, 6, 0, 100, SPLICE_F_NONBLOCK]);
        let ways: Vec<_> = both.iter().map(|it| (it.descriptor, it.direction)).collect();
        assert_eq!(ways, [(6, TransferDirection::Send), (5, TransferDirection::Receive)]);
        assert!(both.iter().all(|it| it.returns_at_once && it.asked == 100));
        let file = transfers(number::SENDFILE, [5, 6, 0x1000, 100, 0, 0]);
        assert_eq!(file.len(), 1);
        assert_eq!(file[0].source, Some(TransferSource { descriptor: 6, place: 0x1000 }));
    }

    #[test]
    fn what_moves_no_bytes_is_no_transfer() {
        assert_eq!(transfers(number::CONNECT, [5, 0, 0, 0, 0, 0]), []);
        assert_eq!(transfers(number::CLOSE, [5, 0, 0, 0, 0, 0]), []);
    }
}
