//! What a call that is shown would do.

use windtunnel_model::record::kind::Call;
use windtunnel_sys::seccomp::Notification;
use windtunnel_sys::seccomp::filter::number;

use crate::process::read_words;

/// What is about to happen to a process.
#[expect(missing_docs, reason = "the fields are the arguments of the calls")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InterceptedSystemCall {
    /// Bytes go through descriptors: `sends` out of the program, by so many bytes at most.
    Transfer {
        call: Call,
        descriptor: i32,
        sends: bool,
        asked: u64,
    },
    /// Bytes go from one descriptor to another.
    Between {
        from: Option<(Call, i32)>,
        to: (Call, i32),
        asked: u64,
    },
    Connect {
        descriptor: i32,
        address: u64,
        length: u64,
    },
    Accept {
        descriptor: i32,
    },
    Shutdown {
        descriptor: i32,
        how: u32,
    },
    Close {
        first: i32,
        last: i32,
    },
    /// Another program, or the end: what is known of descriptors is not true any more.
    Exec,
    Exit,
    /// Calls will go a way that is not seen.
    Ring,
    Other,
}

impl InterceptedSystemCall {
    /// Reads the arguments; lists of buffers are in the memory of the thread.
    #[must_use]
    pub fn of(shown: &Notification) -> InterceptedSystemCall {
        let [a, b, c, d, e, _] = shown.arguments;
        let (from, to) = (low(a), low(b));
        let transfer = |call, sends, asked| InterceptedSystemCall::Transfer {
            call,
            descriptor: from,
            sends,
            asked,
        };
        let vector = |address, count| total(shown.thread, address, count);
        let message = |address| match read_words(shown.thread, address, 4)[..] {
            [_, _, buffers, count] => vector(buffers, count),
            _ => 0,
        };
        match shown.call {
            number::READ => transfer(Call::Read, false, c),
            number::READV => transfer(Call::Readv, false, vector(b, c)),
            number::RECVFROM => transfer(Call::Recvfrom, false, c),
            number::RECVMSG => transfer(Call::Recvmsg, false, message(b)),
            number::RECVMMSG => transfer(Call::Recvmmsg, false, 0),
            number::WRITE => transfer(Call::Write, true, c),
            number::WRITEV => transfer(Call::Writev, true, vector(b, c)),
            number::SENDTO => transfer(Call::Sendto, true, c),
            number::SENDMSG => transfer(Call::Sendmsg, true, message(b)),
            number::SENDMMSG => transfer(Call::Sendmmsg, true, 0),
            number::SENDFILE => {
                InterceptedSystemCall::Between { from: None, to: (Call::Sendfile, from), asked: d }
            }
            number::SPLICE => {
                let (from, to) = ((Call::SpliceFrom, from), (Call::SpliceTo, low(c)));
                InterceptedSystemCall::Between { from: Some(from), to, asked: e }
            }
            number::CONNECT => {
                InterceptedSystemCall::Connect { descriptor: from, address: b, length: c }
            }
            number::ACCEPT | number::ACCEPT4 => InterceptedSystemCall::Accept { descriptor: from },
            number::SHUTDOWN => {
                InterceptedSystemCall::Shutdown { descriptor: from, how: to.cast_unsigned() }
            }
            number::CLOSE => InterceptedSystemCall::Close { first: from, last: from },
            number::DUP2 | number::DUP3 if from == to => InterceptedSystemCall::Other,
            number::DUP2 | number::DUP3 => InterceptedSystemCall::Close { first: to, last: to },
            number::CLOSE_RANGE if c & CLOSE_RANGE_CLOEXEC == 0 => {
                let last = i32::try_from(b & 0xffff_ffff).unwrap_or(i32::MAX);
                InterceptedSystemCall::Close { first: from, last }
            }
            number::EXECVE | number::EXECVEAT => InterceptedSystemCall::Exec,
            number::EXIT_GROUP => InterceptedSystemCall::Exit,
            number::IO_URING_SETUP => InterceptedSystemCall::Ring,
            _ => InterceptedSystemCall::Other,
        }
    }
}

/// The low half, as the kernel takes descriptors.
#[expect(clippy::cast_possible_truncation, reason = "so does the kernel")]
fn low(argument: u64) -> i32 {
    argument as i32
}

/// The lengths of a list of buffers (`struct iovec`), summed up.
#[must_use]
pub fn total(thread: i32, address: u64, count: u64) -> u64 {
    let most = usize::try_from(count.min(BUFFERS_MAX)).unwrap_or(0);
    let words = read_words(thread, address, most * 2);
    words.chunks_exact(2).fold(0, |sum, buffer| sum.saturating_add(buffer[1]))
}

/// `UIO_MAXIOV`.
const BUFFERS_MAX: u64 = 1024;
const CLOSE_RANGE_CLOEXEC: u64 = 1 << 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(call: u32, arguments: [u64; 6]) -> InterceptedSystemCall {
        InterceptedSystemCall::of(&Notification { id: 1, thread: 0, call, arguments })
    }

    #[test]
    fn descriptors_that_come_to_mean_something_else_are_closed() {
        let closed = |first, last| InterceptedSystemCall::Close { first, last };
        assert_eq!(shown(number::CLOSE, [7, 0, 0, 0, 0, 0]), closed(7, 7));
        assert_eq!(shown(number::DUP3, [7, 9, 0, 0, 0, 0]), closed(9, 9));
        assert_eq!(shown(number::DUP3, [7, 7, 0, 0, 0, 0]), InterceptedSystemCall::Other);
        let all = shown(number::CLOSE_RANGE, [3, 0xffff_ffff, 0, 0, 0, 0]);
        assert_eq!(all, closed(3, i32::MAX));
        assert_eq!(shown(number::CLOSE_RANGE, [3, 9, 4, 0, 0, 0]), InterceptedSystemCall::Other);
    }

    #[test]
    fn transfers_have_their_descriptor_and_length() {
        let read = shown(number::READ, [5, 0, 100, 0, 0, 0]);
        let call = Call::Read;
        assert_eq!(
            read,
            InterceptedSystemCall::Transfer { call, descriptor: 5, sends: false, asked: 100 }
        );
        let file = shown(number::SENDFILE, [5, 6, 0, 100, 0, 0]);
        assert_eq!(
            file,
            InterceptedSystemCall::Between { from: None, to: (Call::Sendfile, 5), asked: 100 }
        );
    }
}
