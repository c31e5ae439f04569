//! The last stage of a run over several machines: what is under way between them arrives before
//! anything is counted, so that what each has sent and the other received can be compared.

use windtunnel_model::{Span, Time};
use windtunnel_trace::event::What;

use super::{Live, Side, Stage};
use crate::clock::now;
use crate::dataplane::{Order, Silence};
use crate::part::news::News;

impl Live {
    /// Sends nothing more to other machines, tells each how much has gone to it, and waits until
    /// they have told the same. Returns what is to come here: datagrams by member.
    pub(in crate::live) fn settle(&mut self) -> Vec<(u16, u64)> {
        if self.side.is_none() {
            return Vec::new();
        }
        self.threads.dataplane.order(Order::Close);
        let began = now();
        while !self.side.as_ref().is_none_or(|side| side.is_settled() || side.agent_is_gone()) {
            let patience = if self.end.is_hurried() { PATIENCE_HURRIED } else { PATIENCE };
            let until = began + patience;
            if now() >= until {
                break;
            }
            self.wait(Some(until.since(now())));
        }
        let Some(side) = &self.side else { return Vec::new() };
        side.sent_here.iter().map(|(member, sent)| (*member, *sent)).collect()
    }

    /// Nothing goes to other machines any more.
    pub(in crate::live) fn sends_no_more(&mut self, sent: Vec<(u16, u64)>) {
        let Some(side) = &mut self.side else { return };
        side.news(&News::Sent { datagrams: sent.clone() });
        side.sent = Some(sent);
    }

    /// A machine has become silent, or answers again.
    pub(in crate::live) fn hear_silence(&mut self, silence: Silence) {
        let Some(side) = &self.side else { return };
        let Silence { member, since, until } = silence;
        let (host, peer) = (side.host(side.member), side.host(member));
        let Stage::Begun(origin) = side.stage else { return };
        let after = |time: Time| time.since(origin).as_nanos();
        self.tell(
            None,
            match until {
                None => What::PeerSilent { host, peer, since_ns: after(since) },
                Some(until) => {
                    What::PeerAnswers { host, peer, lasted_ns: until.since(since).as_nanos() }
                }
            },
        );
    }
}

impl Side {
    /// Whether all that can say what they sent here have said it, and this machine has told the
    /// same.
    fn is_settled(&self) -> bool {
        let others = (0..).zip(&self.members).map(|(member, _)| member);
        let mut others = others.filter(|member: &u16| *member != self.member);
        let has_told = |member: u16| {
            self.sent_here.contains_key(&member)
                || self.lost.contains_key(&member)
                || self.gone.contains(&member)
        };
        self.sent.is_some() && others.all(has_told)
    }
}

/// Longer than other machines give their programs to end.
const PATIENCE: Span = Span::from_secs(5);
/// All have been hurried then.
const PATIENCE_HURRIED: Span = Span::from_millis(500);
