//! The queue disciplines of a network namespace, with what they have dropped. Source: rtnetlink(7),
//! linux/pkt_sched.h.

use std::io;

use super::Netlink;
use super::attributes::{each_attribute, text};
use super::message::{HEADER, RtnetlinkMessage};
use super::number::{RTM_GETQDISC, RTM_NEWQDISC, TCA_KIND, TCA_STATS};

/// A queue discipline of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeviceQueueDiscipline {
    /// Index of the device.
    pub(crate) device: u32,
    /// Such as `netem`.
    pub(crate) kind: String,
    pub(crate) dropped: u32,
    /// Packets that wait in it.
    pub(crate) waiting: u32,
}

impl Netlink {
    /// All disciplines of all devices.
    pub(crate) fn disciplines(&mut self) -> io::Result<Vec<DeviceQueueDiscipline>> {
        let mut all = Vec::new();
        let request = RtnetlinkMessage::new(RTM_GETQDISC, &[0; TCMSG_BYTES]);
        self.dump(request, RTM_NEWQDISC, |message| {
            all.push(discipline(message)?);
            Some(())
        })?;
        Ok(all)
    }
}

fn discipline(message: &[u8]) -> Option<DeviceQueueDiscipline> {
    let number =
        |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let mut found = DeviceQueueDiscipline {
        device: number(message, HEADER + 4)?,
        kind: String::new(),
        dropped: 0,
        waiting: 0,
    };
    each_attribute(message.get(HEADER + TCMSG_BYTES..)?, |kind, value| {
        match kind {
            TCA_KIND => found.kind = text(value),
            // struct tc_stats: bytes (8), packets, drops, overlimits, bps, pps, qlen, backlog.
            TCA_STATS => {
                found.dropped = number(value, 12)?;
                found.waiting = number(value, 28)?;
            }
            _ => {}
        }
        Some(())
    })?;
    Some(found)
}

const TCMSG_BYTES: usize = 20;

#[cfg(test)]
mod tests {
    use super::super::number::NLMSG_DONE;
    use super::super::take_all;
    use super::*;

    fn take(datagram: &[u8], all: &mut Vec<DeviceQueueDiscipline>) -> io::Result<bool> {
        take_all(datagram, RTM_NEWQDISC, &mut false, &mut |message| {
            all.push(discipline(message)?);
            Some(())
        })
    }

    /// As the kernel answers for `tc qdisc add dev eth0 root netem` on device 3.
    fn answer(kind: &str, dropped: u32, waiting: u32) -> Vec<u8> {
        let mut header = [0; TCMSG_BYTES];
        header[4..8].copy_from_slice(&3_u32.to_ne_bytes());
        let mut stats = vec![0; 36];
        stats[12..16].copy_from_slice(&dropped.to_ne_bytes());
        stats[28..32].copy_from_slice(&waiting.to_ne_bytes());
        let message = RtnetlinkMessage::new(RTM_NEWQDISC, &header);
        let mut bytes = Vec::new();
        message.text(TCA_KIND, kind).attribute(TCA_STATS, &stats).write(&mut bytes, 2, 1);
        bytes
    }

    #[test]
    fn a_discipline_has_its_device_its_name_and_what_it_dropped_and_holds() {
        let mut all = Vec::new();
        let both = [answer("netem", 12, 3), answer("noqueue", 0, 0)].concat();
        assert!(!take(&both, &mut all).unwrap());
        let netem =
            DeviceQueueDiscipline { device: 3, kind: "netem".into(), dropped: 12, waiting: 3 };
        assert_eq!(all[0], netem);
        assert_eq!(all[1].kind, "noqueue");
        let mut done = Vec::new();
        RtnetlinkMessage::new(NLMSG_DONE, &[0; 4]).write(&mut done, 2, 1);
        assert!(take(&done, &mut all).unwrap());
    }

    #[test]
    fn an_answer_that_is_cut_off_is_an_error_and_no_panic() {
        let whole = answer("netem", 12, 3);
        for length in 1..whole.len() {
            let mut cut = whole[..length].to_vec();
            if length >= 4 {
                cut[..4].copy_from_slice(&u32::try_from(length).unwrap().to_ne_bytes());
            }
            let _ = take(&cut, &mut Vec::new());
        }
        assert!(take(&whole[..20], &mut Vec::new()).is_err());
    }
}
