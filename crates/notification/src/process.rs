//! The processes whose calls are shown: their descriptors and their memory.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;

use windtunnel_sys::process::{self, Pid};

/// A process.
#[derive(Debug)]
pub struct SupervisedProcess {
    /// Its number in its own PID namespace.
    pub number: u32,
    /// Its program's name.
    pub name: [u8; 16],
    pidfd: OwnedFd,
    /// What its descriptors are, as far as they have been looked at: a socket's cookie, or `None`
    /// for something else.
    pub descriptors: BTreeMap<i32, Option<u64>>,
}

/// Processes by their threads, as the host process numbers them.
#[derive(Debug, Default)]
pub struct SupervisedProcessTable {
    /// For each thread, its process and when that was found out.
    threads: BTreeMap<i32, (i32, u64)>,
    processes: BTreeMap<i32, SupervisedProcess>,
}

impl SupervisedProcessTable {
    /// The process of a thread whose call waits; whether it was not known. Numbers of processes
    /// come again, so what is known of a thread is not believed for longer than a second.
    ///
    /// # Errors
    /// If there is no such thread.
    pub fn of_thread(
        &mut self,
        thread: i32,
        now_ns: u64,
    ) -> io::Result<(i32, bool, &mut SupervisedProcess)> {
        let known = self.threads.get(&thread).filter(|(pid, found_ns)| {
            now_ns.saturating_sub(*found_ns) < BELIEVED_NS && self.processes.contains_key(pid)
        });
        if let Some((pid, _)) = known {
            let pid = *pid;
            let process = self.processes.get_mut(&pid).ok_or(io::ErrorKind::NotFound)?;
            return Ok((pid, false, process));
        }
        let status = std::fs::read_to_string(format!("/proc/{thread}/status"))?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let pid: i32 =
            field("Tgid:").and_then(|text| text.trim().parse().ok()).ok_or_else(malformed)?;
        let inner = field("NSpid:").and_then(|text| text.split_ascii_whitespace().last());
        let number = inner.and_then(|text| text.parse().ok()).unwrap_or(0);
        self.threads.insert(thread, (pid, now_ns));
        // For a thread other than the first the number is that of the thread, and not the process's.
        let number = if thread == pid { number } else { inner_number(pid).unwrap_or(number) };
        let is_new = self.processes.get(&pid).is_none_or(|process| process.number != number);
        if is_new {
            let pidfd = process::open_pidfd(Pid::from_raw(pid).ok_or_else(malformed)?)?;
            let mut name = [0; 16];
            let text = field("Name:").unwrap_or_default().trim().as_bytes();
            let length = text.len().min(name.len());
            name[..length].copy_from_slice(&text[..length]);
            let descriptors = BTreeMap::new();
            self.processes.insert(pid, SupervisedProcess { number, name, pidfd, descriptors });
        }
        let process = self.processes.get_mut(&pid).ok_or(io::ErrorKind::NotFound)?;
        Ok((pid, is_new, process))
    }

    /// A process that was seen.
    pub fn known(&mut self, pid: i32) -> Option<&mut SupervisedProcess> {
        self.processes.get_mut(&pid)
    }

    /// The process has ended, or is about to.
    pub fn forget(&mut self, pid: i32) {
        self.processes.remove(&pid);
        self.threads.retain(|_, (of, _)| *of != pid);
    }

    /// Whether a descriptor of any process is this socket.
    #[must_use]
    pub fn refer_to(&self, cookie: u64) -> bool {
        let mut all = self.processes.values().flat_map(|process| process.descriptors.values());
        all.any(|known| *known == Some(cookie))
    }
}

impl SupervisedProcess {
    /// A copy of a descriptor, which has to be closed before the call goes on; `None`: there is none of
    /// that number.
    ///
    /// # Errors
    /// What pidfd_getfd(2) says.
    pub fn copy(&self, descriptor: i32) -> io::Result<Option<OwnedFd>> {
        match process::pidfd_getfd(&self.pidfd, descriptor) {
            Err(error) if error.raw_os_error() == Some(EBADF) => Ok(None),
            copy => copy.map(Some),
        }
    }

    /// The sockets that are known among its descriptors from one to another, with their cookies.
    #[must_use]
    pub fn sockets(&self, first: i32, last: i32) -> Vec<(i32, u64)> {
        let known = (first <= last).then(|| self.descriptors.range(first..=last));
        let sockets = known.into_iter().flatten();
        sockets.filter_map(|(number, cookie)| Some((*number, (*cookie)?))).collect()
    }

    /// Descriptors from one to another come to mean something else.
    pub fn forget_descriptors(&mut self, first: i32, last: i32) {
        self.descriptors.retain(|number, _| !(first..=last).contains(number));
    }
}

/// The number of a process in its own PID namespace.
fn inner_number(pid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
}

/// Numbers of this length in the memory of a process; fewer where it has not as much there.
#[must_use]
pub fn read_words(thread: i32, address: u64, most: usize) -> Vec<u64> {
    let mut bytes = vec![0; most * 8];
    let pid = Pid::from_raw(thread);
    let read = pid.and_then(|pid| process::read_memory(pid, address, &mut bytes).ok());
    let whole = bytes[..read.unwrap_or(0)].chunks_exact(8);
    whole.map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
}

/// The address of the Internet's protocols that `struct sockaddr` in the memory of a process names.
#[must_use]
pub fn read_address(thread: i32, address: u64, length: u64) -> Option<SocketAddr> {
    try_address(thread, address, length, false).ok().flatten()
}

/// The same; `None`: it names another protocol. `sends`: an address of no family is one of IPv4, as
/// the kernel takes it where a message is sent (`udp_sendmsg`).
///
/// # Errors
/// If the memory cannot be read.
pub fn try_address(
    thread: i32,
    address: u64,
    length: u64,
    sends: bool,
) -> io::Result<Option<SocketAddr>> {
    let unread = || io::Error::from(io::ErrorKind::InvalidData);
    let words =
        read_words(thread, address, usize::try_from(length.min(32)).unwrap_or(0).div_ceil(8));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let part = |range: std::ops::Range<usize>| bytes.get(range).ok_or_else(unread);
    let family = u16::from_ne_bytes(part(0..2)?.try_into().map_err(|_| unread())?);
    let ip: IpAddr = match family {
        AF_UNSPEC if !sends => return Ok(None),
        AF_INET | AF_UNSPEC => {
            Ipv4Addr::from(<[u8; 4]>::try_from(part(4..8)?).map_err(|_| unread())?).into()
        }
        AF_INET6 => {
            Ipv6Addr::from(<[u8; 16]>::try_from(part(8..24)?).map_err(|_| unread())?).into()
        }
        _ => return Ok(None),
    };
    let port = u16::from_be_bytes(part(2..4)?.try_into().map_err(|_| unread())?);
    Ok(Some(SocketAddr::new(ip, port)))
}

const BELIEVED_NS: u64 = 1_000_000_000;
/// "Bad file descriptor", of errno(3).
const EBADF: i32 = 9;
const AF_UNSPEC: u16 = 0;
const AF_INET: u16 = 2;
const AF_INET6: u16 = 10;
