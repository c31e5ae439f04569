//! The members of a run over several machines: which nodes they have, and how far they are.

use std::collections::{BTreeMap, BTreeSet};

use windtunnel_model::{Span, Time};

/// What one member knows of all.
#[derive(Debug)]
pub(crate) struct RunMemberTable {
    own: u16,
    /// Names of the machines, by member.
    names: Vec<String>,
    /// By node: on which member it is.
    placement: Vec<u16>,
    /// By member: whether its programs have had their lives.
    idle: Vec<bool>,
    /// By member: when it was lost.
    lost: BTreeMap<u16, Span>,
    /// Members that do not answer now, and since when.
    silent: BTreeMap<u16, Time>,
    /// Members for which the run is over.
    ended: BTreeSet<u16>,
    /// Whether the machines on the other side of a cut network are the run.
    cut_off: bool,
    /// Members from which nothing more comes.
    gone: BTreeSet<u16>,
    /// Whether this member has said how much it has sent, and sends no more.
    has_sent: bool,
    /// By member: datagrams with packets that it has sent here, once it sends no more.
    sent_here: BTreeMap<u16, u64>,
}

impl RunMemberTable {
    pub(crate) fn new(own: u16, names: Vec<String>, placement: Vec<u16>) -> Self {
        RunMemberTable {
            own,
            idle: vec![false; names.len()],
            names,
            placement,
            lost: BTreeMap::new(),
            silent: BTreeMap::new(),
            ended: BTreeSet::new(),
            cut_off: false,
            gone: BTreeSet::new(),
            has_sent: false,
            sent_here: BTreeMap::new(),
        }
    }

    /// By node: whether it is on this machine.
    pub(crate) fn here(&self) -> Vec<bool> {
        self.placement.iter().map(|place| *place == self.own).collect()
    }

    /// Which were lost, and when.
    pub(crate) fn lost(&self) -> &BTreeMap<u16, Span> {
        &self.lost
    }

    /// Whether the network was cut, and the run is what the other side does.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    pub(in crate::live) fn count(&self) -> usize {
        self.names.len()
    }

    pub(in crate::live) fn placement(&self) -> &[u16] {
        &self.placement
    }

    /// The name of a member's machine.
    pub(in crate::live) fn name(&self, member: u16) -> String {
        self.names.get(usize::from(member)).cloned().unwrap_or_default()
    }

    /// The name of this machine.
    pub(in crate::live) fn own_name(&self) -> String {
        self.name(self.own)
    }

    /// Whether a node is on this machine.
    pub(in crate::live) fn is_here(&self, node: usize) -> bool {
        self.has_node(self.own, node)
    }

    pub(in crate::live) fn has_node(&self, member: u16, node: usize) -> bool {
        self.placement.get(node) == Some(&member)
    }

    pub(in crate::live) fn is_lost(&self, member: u16) -> bool {
        self.lost.contains_key(&member)
    }

    /// Whether a member's programs that are not daemons have had their lives.
    pub(in crate::live) fn set_idle(&mut self, member: u16, idle: bool) {
        if let Some(known) = self.idle.get_mut(usize::from(member)) {
            *known = idle;
        }
    }

    /// Whether all other machines that are left have nothing more to do.
    pub(in crate::live) fn others_are_idle(&self) -> bool {
        self.others().all(|member| self.idle[usize::from(member)] || self.is_lost(member))
    }

    /// A member has said that the run is over.
    pub(in crate::live) fn set_ended(&mut self, member: u16) {
        self.ended.insert(member);
    }

    /// A member is declared lost. Returns its nodes if that matters: if it was not lost before, had
    /// not ended, and is another machine.
    pub(in crate::live) fn lose(
        &mut self,
        member: u16,
        at: Span,
        cut_off: bool,
    ) -> Option<Vec<usize>> {
        self.gone.insert(member);
        if self.is_done(member) || member == self.own {
            return None;
        }
        self.cut_off |= cut_off;
        self.lost.insert(member, at);
        let places = self.placement.iter().enumerate();
        Some(places.filter(|(_, place)| **place == member).map(|(node, _)| node).collect())
    }

    /// A member does not answer. Returns whether that is new and matters.
    pub(in crate::live) fn set_silent(&mut self, member: u16, since: Time) -> bool {
        let matters = !self.is_done(member) && !self.gone.contains(&member);
        let is_new = matters && !self.silent.contains_key(&member);
        if is_new {
            self.silent.insert(member, since);
        }
        is_new
    }

    /// A member answers again: since when it had not, if that is known.
    pub(in crate::live) fn set_answering(&mut self, member: u16) -> Option<Time> {
        self.silent.remove(&member)
    }

    /// A member's part is over. Returns whether it had not said so before: members end when the run
    /// does, and say so to all but those that they take for lost.
    pub(in crate::live) fn leave(&mut self, member: u16) -> bool {
        self.gone.insert(member);
        !self.is_done(member)
    }

    /// This member has said how much it has sent to each other.
    pub(in crate::live) fn set_sent(&mut self) {
        self.has_sent = true;
    }

    /// A member has sent so many datagrams to each of some members, and sends no more.
    pub(in crate::live) fn set_sent_by(&mut self, member: u16, datagrams: &[(u16, u64)]) {
        let here = datagrams.iter().find(|(to, _)| *to == self.own);
        self.sent_here.extend(here.map(|(_, sent)| (member, *sent)));
    }

    /// Datagrams with packets that are to come here, by member.
    pub(in crate::live) fn sent_here(&self) -> Vec<(u16, u64)> {
        self.sent_here.iter().map(|(member, sent)| (*member, *sent)).collect()
    }

    /// Whether all that can say what they sent here have said it, and this machine has said the
    /// same.
    pub(in crate::live) fn is_settled(&self) -> bool {
        let has_said = |member: u16| {
            self.sent_here.contains_key(&member)
                || self.is_lost(member)
                || self.gone.contains(&member)
        };
        self.has_sent && self.others().all(has_said)
    }

    /// Whether a member is lost, or has said that the run is over.
    fn is_done(&self, member: u16) -> bool {
        self.is_lost(member) || self.ended.contains(&member)
    }

    fn others(&self) -> impl Iterator<Item = u16> {
        let all = (0_u16..).zip(&self.names).map(|(member, _)| member);
        all.filter(|member| *member != self.own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Member 1 of three, with node 1; member 0 has nodes 0 and 3, member 2 node 2.
    fn members() -> RunMemberTable {
        RunMemberTable::new(1, ["a", "b", "c"].map(str::to_owned).to_vec(), vec![0, 1, 2, 0])
    }

    const LATER: Span = Span::from_secs(3);

    #[test]
    fn each_node_is_on_one_member() {
        let members = members();
        assert_eq!(members.here(), [false, true, false, false]);
        assert!(members.is_here(1) && !members.is_here(0));
        assert!(members.has_node(0, 3) && !members.has_node(2, 3));
        assert!(!members.has_node(0, 9), "there is no such node");
        assert_eq!(
            (members.own_name(), members.name(2), members.name(9)),
            ("b".into(), "c".into(), String::new())
        );
    }

    #[test]
    fn the_others_are_idle_when_all_that_are_left_are() {
        let mut members = members();
        assert!(!members.others_are_idle());
        members.set_idle(0, true);
        assert!(!members.others_are_idle());
        members.lose(2, LATER, false);
        assert!(members.others_are_idle());
        members.set_idle(0, false);
        assert!(!members.others_are_idle(), "a program has joined there");
        members.set_idle(9, true);
    }

    #[test]
    fn a_lost_member_takes_its_nodes_with_it_once() {
        let mut members = members();
        assert_eq!(members.lose(0, LATER, false), Some(vec![0, 3]));
        assert_eq!(members.lose(0, LATER, false), None);
        assert_eq!(members.lost().get(&0), Some(&LATER));
        assert!(!members.is_cut_off());
    }

    #[test]
    fn a_silence_is_reported_once_and_over_when_the_member_answers() {
        let since = Time::from_nanos(7);
        let mut members = members();
        assert!(members.set_silent(0, since));
        assert!(!members.set_silent(0, Time::from_nanos(9)));
        assert_eq!((members.set_answering(0), members.set_answering(0)), (Some(since), None));
        members.set_ended(0);
        assert!(!members.set_silent(0, since), "its part is over: it need not answer");
        members.lose(2, LATER, false);
        assert!(!members.set_silent(2, since));
    }

    #[test]
    fn a_member_that_has_ended_is_not_lost_afterwards() {
        let mut members = members();
        members.set_ended(2);
        assert_eq!(members.lose(2, LATER, true), None);
        assert!(members.lost().is_empty() && !members.is_cut_off());
        assert_eq!(members.lose(1, LATER, false), None, "this machine does not lose itself");
    }

    #[test]
    fn the_smaller_side_of_a_cut_network_knows_that_it_is_cut_off() {
        let mut members = members();
        members.lose(0, LATER, true);
        members.lose(2, LATER, false);
        assert!(members.is_cut_off());
    }

    #[test]
    fn a_member_that_leaves_without_notice_has_ended_the_run_without_this_machine() {
        let mut members = members();
        assert!(members.leave(0));
        members.set_ended(2);
        assert!(!members.leave(2));
    }

    #[test]
    fn all_is_settled_when_each_side_knows_what_the_other_has_sent() {
        let mut members = members();
        members.set_sent_by(0, &[(1, 70), (2, 9)]);
        members.set_sent_by(2, &[(0, 4)]);
        assert!(!members.is_settled(), "this member has not said what it sent");
        members.set_sent();
        assert!(!members.is_settled(), "member 2 has not named this one");
        members.set_sent_by(2, &[(1, 0)]);
        assert!(members.is_settled());
        assert_eq!(members.sent_here(), [(0, 70), (2, 0)]);
    }

    #[test]
    fn members_that_are_lost_or_gone_have_nothing_more_to_say() {
        let mut members = members();
        members.set_sent();
        members.lose(0, LATER, false);
        assert!(!members.is_settled());
        members.leave(2);
        assert!(members.is_settled());
    }
}
