//! A run that does not come to its beginning: which machines it waits for, and what for.

use std::net::SocketAddr;
use std::time::Duration;

use windtunnel_cluster::part_ports;
use windtunnel_cluster::protocol::run::RunMember;

use crate::conductor::ClusterRunStage;
use crate::error::{LeadError, LeadErrorKind};

/// A stage that takes too long.
pub(crate) struct OverdueRunStage {
    pub(crate) stage: ClusterRunStage,
    pub(crate) patience: Duration,
    /// Members that are not through with it, and from which others each has received nothing.
    pub(crate) waiting: Vec<(u16, Vec<u16>)>,
    /// By member: the port that its packets come to.
    pub(crate) ports: Vec<u16>,
}

impl ClusterRunStage {
    /// How long nothing may move in this stage; less where all that is waited for are machines that
    /// others do not receive from.
    pub(crate) fn patience(self, only_unreached: bool) -> Duration {
        Duration::from_secs(match self {
            // A part sends a greeting several times a second.
            ClusterRunStage::Reaching => 10,
            ClusterRunStage::Preparing if only_unreached => 20,
            ClusterRunStage::Binding | ClusterRunStage::Running => 30,
            // Each node that is made is a move.
            ClusterRunStage::Preparing | ClusterRunStage::Measuring => 60,
        })
    }
}

impl OverdueRunStage {
    pub(crate) fn error(&self, members: &[RunMember]) -> LeadError {
        let pairs = self.waiting.iter().flat_map(|(to, from)| from.iter().map(|from| (*from, *to)));
        let pairs: Vec<(u16, u16)> = pairs.collect();
        let text = match (self.stage, pairs.as_slice()) {
            (ClusterRunStage::Preparing | ClusterRunStage::Reaching, [(from, to), more @ ..]) => {
                self.unreached(members, *from, *to, more.len())
            }
            _ => self.stuck(members),
        };
        LeadError::new(LeadErrorKind::Machine, text).with_hint(hint(members))
    }

    fn unreached(&self, members: &[RunMember], from: u16, to: u16, more: usize) -> String {
        let more = match more {
            0 => String::new(),
            1 => " (nor between one more pair)".to_owned(),
            more => format!(" (nor between {more} more pairs)"),
        };
        let what = match self.stage {
            ClusterRunStage::Preparing => "the agents do not reach each other: nothing comes",
            _ => "no packet comes",
        };
        format!(
            "{what} from host {} to host {}: nothing was received within {} s{more}",
            self.place(members, from),
            self.place(members, to),
            self.patience.as_secs()
        )
    }

    fn stuck(&self, members: &[RunMember]) -> String {
        let what = match self.stage {
            ClusterRunStage::Binding => "opened a UDP port for its packets",
            ClusterRunStage::Preparing => "made its nodes and reached the agents of all others",
            ClusterRunStage::Reaching => "received packets from all others and reached them",
            ClusterRunStage::Measuring => "measured the paths of its nodes",
            ClusterRunStage::Running => "said that it knows when the run begins",
        };
        let hosts = self.waiting.iter().filter_map(|(member, _)| members.get(usize::from(*member)));
        let hosts: Vec<String> =
            hosts.map(|member| format!("{} ({})", member.host, member.address)).collect();
        let (hosts, patience) = (hosts.join(", "), self.patience.as_secs());
        format!("host {hosts} has not {what}: nothing has moved for {patience} s")
    }

    /// A machine's name, and where its agent listens, or its packets come to.
    fn place(&self, members: &[RunMember], number: u16) -> String {
        let index = usize::from(number);
        let (Some(member), Some(port)) = (members.get(index), self.ports.get(index)) else {
            return number.to_string();
        };
        let address = match self.stage {
            ClusterRunStage::Preparing => member.address,
            _ => SocketAddr::new(member.address.ip(), *port),
        };
        format!("{} ({address})", member.host)
    }
}

/// Which ports have to be open.
fn hint(members: &[RunMember]) -> String {
    let mut ranges: Vec<String> = members
        .iter()
        .map(|member| {
            let port = member.address.port();
            format!("{port}-{}", part_ports(port).1)
        })
        .collect();
    ranges.sort();
    ranges.dedup();
    format!("let UDP ports {} pass between all machines, in both directions", ranges.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::text;

    fn members() -> Vec<RunMember> {
        let member = |(host, at): (&str, u8)| RunMember {
            agent: String::new(),
            host: host.to_owned(),
            address: ([10, 0, 0, at], 7447).into(),
            has: Default::default(),
        };
        [("one", 1), ("two", 2), ("three", 3)].map(member).into()
    }

    fn text_of(stage: ClusterRunStage, waiting: &[(u16, &[u16])]) -> String {
        let waiting = waiting.iter().map(|(member, all)| (*member, all.to_vec())).collect();
        let ports = vec![7448, 7449, 7448];
        let patience = stage.patience(false);
        let overdue = OverdueRunStage { stage, patience, waiting, ports }.error(&members());
        text(&overdue)
    }

    #[test]
    fn machines_that_do_not_reach_each_other_are_named_with_their_ports() {
        let hint = "hint: let UDP ports 7447-7547 pass between all machines, in both directions";
        assert_eq!(
            text_of(ClusterRunStage::Reaching, &[(1, &[2]), (2, &[])]),
            format!(
                "error: no packet comes from host three (10.0.0.3:7448) to host two (10.0.0.2:7449): nothing was \
                 received within 10 s\n{hint}"
            )
        );
        let text = text_of(ClusterRunStage::Reaching, &[(0, &[1, 2]), (1, &[0])]);
        assert!(
            text.contains("from host two (10.0.0.2:7449) to host one (10.0.0.1:7448)"),
            "{text}"
        );
        assert!(text.contains("(nor between 2 more pairs)"), "{text}");
    }

    #[test]
    fn agents_that_do_not_reach_each_other_are_named_with_their_ports() {
        let text = text_of(ClusterRunStage::Preparing, &[(1, &[2])]);
        let pair = "nothing comes from host three (10.0.0.3:7447) to host two (10.0.0.2:7447)";
        assert!(
            text.starts_with(&format!("error: the agents do not reach each other: {pair}")),
            "{text}"
        );
    }

    #[test]
    fn each_stage_names_the_machines_that_it_waits_for() {
        for stage in [
            ClusterRunStage::Binding,
            ClusterRunStage::Preparing,
            ClusterRunStage::Reaching,
            ClusterRunStage::Measuring,
        ] {
            let text = text_of(stage, &[(1, &[])]);
            assert!(text.starts_with("error: host two (10.0.0.2:7447) has not "), "{text}");
            assert!(text.contains(&format!("for {} s", stage.patience(false).as_secs())), "{text}");
        }
    }

    #[test]
    fn each_stage_says_what_was_not_done_in_which_time() {
        let expected = [
            (ClusterRunStage::Binding, "opened a UDP port for its packets", 30),
            (ClusterRunStage::Preparing, "made its nodes and reached the agents of all others", 60),
            (ClusterRunStage::Reaching, "received packets from all others and reached them", 10),
            (ClusterRunStage::Measuring, "measured the paths of its nodes", 60),
            (ClusterRunStage::Running, "said that it knows when the run begins", 30),
        ];
        for (stage, what, seconds) in expected {
            let text = text_of(stage, &[(0, &[]), (2, &[])]);
            let line = format!(
                "error: host one (10.0.0.1:7447), three (10.0.0.3:7447) has not {what}: nothing has moved for {seconds} s\n"
            );
            assert!(text.starts_with(&line), "{text}");
            // Only agents can be unreached.
            let less = stage.patience(true).as_secs();
            assert_eq!(less, if stage == ClusterRunStage::Preparing { 20 } else { seconds });
        }
    }

    #[test]
    fn ports_of_all_machines_are_named_once() {
        let mut members = members();
        members[1].address.set_port(9000);
        assert_eq!(
            hint(&members),
            "let UDP ports 7447-7547, 9000-9100 pass between all machines, in both directions"
        );
        members[2].address.set_port(65_500);
        assert!(hint(&members).contains("65500-65535"), "{}", hint(&members));
    }

    #[test]
    fn a_member_that_there_is_not_is_named_by_its_number() {
        let text = text_of(ClusterRunStage::Reaching, &[(1, &[9])]);
        assert!(text.contains("from host 9 to host two (10.0.0.2:7449)"), "{text}");
        let text = text_of(ClusterRunStage::Reaching, &[(1, &[0]), (2, &[0])]);
        assert!(text.contains("(nor between one more pair)"), "{text}");
    }
}
