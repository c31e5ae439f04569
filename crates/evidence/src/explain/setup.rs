//! The set-up of a connection: from `connect` to the answer to its SYN.

use windtunnel_model::record::flag;
use windtunnel_model::record::kind::Call;

use super::index::FlowIndex;
use super::losses::{LossDetectionMethod, PacketRetransmission};
use super::part::LatencyComponent;
use super::walk::{LatencyAttribution, LatencySegment};
use crate::history::{EndpointRole, PacketKind};

/// When the set-up began and ended; `None`: it is not recorded, or did not come to an end.
pub(super) fn span(flow: &FlowIndex<'_>) -> Option<(u64, u64)> {
    let calls = flow.history.calls[EndpointRole::Client.index()].iter();
    let connect = calls.clone().find(|call| call.call == Call::Connect);
    let sent = flow.handshakes[EndpointRole::Client.index()].first_entered(0);
    let answered = flow.handshakes[EndpointRole::Server.index()].first_arrived(0);
    let begin = connect.map(|call| call.begin).or(sent)?;
    match connect {
        Some(call) if call.result >= 0 => Some((begin, call.end)),
        Some(call) => Some((begin, answered.or_else(|| refused(flow))?.max(call.end))),
        None => Some((begin, answered?)),
    }
}

fn refused(flow: &FlowIndex<'_>) -> Option<u64> {
    let mut packets = flow.history.packets[EndpointRole::Server.index()].iter().rev();
    let reset = packets
        .find(|packet| packet.kind == PacketKind::Delivered && packet.flags & flag::RST != 0)?;
    Some(reset.time)
}

/// Where its time went, the earliest first, and the losses that took part.
pub(super) fn explain(
    flow: &FlowIndex<'_>,
    begin: u64,
    end: u64,
) -> (Vec<LatencySegment>, Vec<PacketRetransmission>) {
    let (mut walk, mut losses) = (LatencyAttribution::new(begin, end), Vec::new());
    let mut arrival = flow.handshakes[EndpointRole::Server.index()].first_arrived(0);
    for sender in [EndpointRole::Server, EndpointRole::Client] {
        let Some(arrived) = arrival else { break };
        walk.back_to(arrived, LatencyComponent::Kernel(sender.peer()));
        let route = &flow.handshakes[sender.index()];
        let Some(sent) = route.journey(0, arrived, &mut walk) else { break };
        back_over_copies(flow, sender, sent, &mut walk, &mut losses);
        let before = walk.now() + flow.history.order_error_ns;
        arrival = flow.handshakes[sender.peer().index()].last_arrived(0, before);
    }
    losses.reverse();
    let rest = match flow.handshakes[EndpointRole::Client.index()].first_entered(0) {
        Some(sent) => {
            // No answer came: the time since the first SYN was spent on asking again.
            walk.back_to(sent, LatencyComponent::Recovery(None));
            LatencyComponent::Kernel(EndpointRole::Client)
        }
        None => LatencyComponent::Network,
    };
    (walk.finish(rest), losses)
}

fn back_over_copies(
    flow: &FlowIndex<'_>,
    sender: EndpointRole,
    sent: u64,
    walk: &mut LatencyAttribution,
    losses: &mut Vec<PacketRetransmission>,
) {
    let route = &flow.handshakes[sender.index()];
    let mut sent = sent;
    while let Some(earlier) = sent.checked_sub(1).and_then(|before| route.last_entered(0, before)) {
        let drop = route.dropped(0, sent).filter(|(_, drop)| drop.time >= earlier);
        let dropped =
            drop.map(|(lane, it)| (lane, it.time, u32::try_from(it.value).unwrap_or(u32::MAX)));
        let notice = LossDetectionMethod::Timeout;
        losses.push(PacketRetransmission {
            sender,
            offset: 0,
            sent_at: earlier,
            dropped,
            resent_at: sent,
            notice,
        });
        walk.back_to(earlier, LatencyComponent::Recovery(dropped.map(|(lane, ..)| lane)));
        sent = earlier;
    }
}
