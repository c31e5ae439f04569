//! The tables of `ip_tables` and `ip6_tables` of the caller's network namespace, which
//! `iptables-legacy` and `ip6tables-legacy` fill. Source: linux/netfilter_ipv4/ip_tables.h.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::ffi::check;

/// Of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XtablesFamily {
    /// `ip_tables`.
    V4,
    /// `ip6_tables`.
    V6,
}

/// How many hooks a table can have.
pub const HOOKS: usize = 5;

/// A table, as the kernel has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XtablesTable {
    /// Where the chain of each hook begins in `entries`.
    pub begins: [Option<u32>; HOOKS],
    /// Where the entry is that is its policy.
    pub ends: [Option<u32>; HOOKS],
    /// `struct ipt_entry` or `struct ip6t_entry`, one behind the other.
    pub entries: Vec<u8>,
}

/// Reads a table. The kernel makes one that is not there yet, if it can.
///
/// # Errors
/// `ENOENT` where there is no such table, `ENOPROTOOPT` where there are none, `EPERM` without
/// `CAP_NET_ADMIN`, `EAGAIN` where it was changed meanwhile, `EMSGSIZE` where it has more than
/// `bytes_max` bytes.
pub fn read(version: XtablesFamily, name: &str, bytes_max: usize) -> io::Result<XtablesTable> {
    let (family, level) = match version {
        XtablesFamily::V4 => (AddressFamily::INET, libc::SOL_IP),
        XtablesFamily::V6 => (AddressFamily::INET6, libc::SOL_IPV6),
    };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    let mut info = [0_u32; INFO_WORDS];
    put_name(&mut info, name)?;
    get(&socket, level, SO_GET_INFO, &mut info)?;
    let bytes = usize::try_from(info[SIZE_AT]).unwrap_or(usize::MAX);
    if bytes > bytes_max {
        return Err(io::Error::from_raw_os_error(libc::EMSGSIZE));
    }
    // The kernel's sizes are multiples of 8.
    let mut answer = vec![0_u32; ENTRIES_AT + bytes / WORD];
    put_name(&mut answer, name)?;
    answer[NAME_WORDS] = info[SIZE_AT];
    get(&socket, level, SO_GET_ENTRIES, &mut answer)?;
    let of_hooks = |at: usize| {
        let is_valid = |hook: usize| info[NAME_WORDS] & (1 << hook) != 0;
        std::array::from_fn(|hook| is_valid(hook).then(|| info[at + hook]))
    };
    Ok(XtablesTable {
        begins: of_hooks(NAME_WORDS + 1),
        ends: of_hooks(NAME_WORDS + 1 + HOOKS),
        entries: answer[ENTRIES_AT..].iter().flat_map(|word| word.to_ne_bytes()).collect(),
    })
}

/// Puts the name of a table where both requests have it.
fn put_name(request: &mut [u32], name: &str) -> io::Result<()> {
    let mut bytes = [0; NAME_WORDS * WORD];
    // With a zero byte behind it.
    let place = bytes.get_mut(..name.len()).filter(|place| place.len() < NAME_WORDS * WORD);
    place.ok_or(io::ErrorKind::InvalidInput)?.copy_from_slice(name.as_bytes());
    for (word, bytes) in request.iter_mut().zip(bytes.as_chunks().0) {
        *word = u32::from_ne_bytes(*bytes);
    }
    Ok(())
}

/// getsockopt(2) with a value that is request and answer.
fn get(socket: &OwnedFd, level: i32, option: i32, value: &mut [u32]) -> io::Result<()> {
    let bytes = size_of_val(value);
    let mut length = u32::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `value` is valid for reads and writes of `length` bytes, of which the kernel fills no
    // more, and any bytes are numbers.
    let returned = unsafe {
        let value = value.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), level, option, value, &raw mut length)
    };
    check(returned).map(drop)
}

const WORD: usize = size_of::<u32>();
/// `XT_TABLE_MAXNAMELEN`, 32 bytes.
const NAME_WORDS: usize = 8;
/// `struct ipt_getinfo`: name, valid hooks, begins, ends, number of entries, bytes.
const INFO_WORDS: usize = NAME_WORDS + 1 + 2 * HOOKS + 2;
const SIZE_AT: usize = INFO_WORDS - 1;
/// In `struct ipt_get_entries`, behind name and size, at a multiple of 8 bytes.
const ENTRIES_AT: usize = NAME_WORDS + 2;
/// `IPT_SO_GET_INFO` and `IP6T_SO_GET_INFO`; `IPT_SO_GET_ENTRIES` and `IP6T_SO_GET_ENTRIES`.
const SO_GET_INFO: i32 = 64;
const SO_GET_ENTRIES: i32 = 65;
