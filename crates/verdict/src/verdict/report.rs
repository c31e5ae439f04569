//! The figures of a run as `run.json` has them.

use std::collections::BTreeMap;

use windtunnel_dataplane::receive_queue::ReceiveQueueCounters;
use windtunnel_dataplane::{LaneResult, PeerTraffic};
use windtunnel_engine::{LaneCounters, RouterCounters};
use windtunnel_model::quantity::total;
use windtunnel_model::{DropReason, Lane, Plan, RouterId, Span, Time};
use windtunnel_sys::limits as machine_limits;
use windtunnel_trace::lateness::{self, LatenessHistogram};
use windtunnel_trace::report::{
    AchievedLinkFigures, ExpectationResult, FlowStarts, HostReport, LateEvent, LinkPhaseReport,
    LinkReport, LostHost, MachineReport, NodeReceived, PeerTrafficReport, ProgramReport, RouterNat,
    RouterReport, RunReport, RunVerdict, SchedulePunctuality,
};

use super::expectations::ending;
use super::programs::has_failed;
use super::{bounds, clocks, internet, limits, services, shares};
use crate::evidence::{
    LateOccurrence, LostMachine, PartEvidence, PunctualitySummary, RunEvidence, busy_percent,
};

/// Puts the report together.
pub(super) fn assemble(
    evidence: &RunEvidence<'_>,
    expectations: Vec<ExpectationResult>,
    verdict: RunVerdict,
) -> RunReport {
    let plan = evidence.plan;
    let lanes = evidence.tally.lanes.iter().enumerate();
    let routers = plan.routers.iter().zip(&evidence.tally.routers);
    RunReport {
        windtunnel: env!("CARGO_PKG_VERSION").to_owned(),
        name: plan.name.clone(),
        seed: plan.seed,
        plan_hash: evidence.plan_hash.to_owned(),
        began_unix_s: evidence.began_unix_s,
        kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
        elapsed_ns: evidence.elapsed.as_nanos(),
        setup_ns: evidence.setup.as_nanos(),
        ended: evidence.ending.reason(),
        verdict,
        partial: evidence.cut_off,
        attempts: evidence.attempts.to_vec(),
        lost: evidence.lost.iter().map(lost).collect(),
        lateness: evidence.tally.departures.summary(),
        planned: planned(evidence.planned),
        machine: machine(evidence),
        hosts: evidence.hosts.iter().map(host).collect(),
        programs: programs(evidence),
        limits: limits::report(evidence),
        received: received(evidence),
        services: services::report(evidence),
        replicas_watched: evidence.services.watched,
        shares: shares::report(evidence),
        bounds: bounds::report(evidence),
        internet: internet::report(evidence),
        expectations,
        links: lanes
            .map(|(index, result)| {
                let peak = evidence.recorded.peak_bytes_per_s.get(index).copied();
                let lane = Lane::from_index(index);
                link(plan, lane, result, peak.unwrap_or(0), evidence.late_above)
            })
            .collect(),
        routers: routers
            .enumerate()
            .map(|(id, (it, counters))| RouterReport {
                nat: nat(evidence, RouterId::from_index(id)),
                ..router(&it.name, counters)
            })
            .collect(),
        records: evidence.records.cloned(),
    }
}

fn host(part: &PartEvidence<'_>) -> HostReport {
    let between = part.evidence.tally.remote.unwrap_or_default();
    HostReport {
        host: part.results.host.clone(),
        kernel: part.results.kernel.clone(),
        nodes: part.nodes,
        machine: MachineReport { cpus: part.results.cpus, ..machine(&part.evidence) },
        lateness: part.evidence.tally.departures.summary(),
        planned: planned(part.evidence.planned),
        sent_packets: between.sent_packets,
        sent_bytes: between.sent_bytes,
        received_packets: between.received_packets,
        lost_datagrams: between.lost_datagrams,
        refused_datagrams: between.refused_datagrams,
        peers: part.evidence.tally.peers.iter().map(|peer| self::peer(part, peer)).collect(),
        flow_starts: flow_starts(between.announced_flows, &part.evidence.tally.flow_starts),
    }
}

fn planned(planned: &PunctualitySummary) -> SchedulePunctuality {
    let late = |late: &LateOccurrence| LateEvent {
        event: late.what.clone(),
        intended_ns: late.intended.as_nanos(),
        late_ns: late.late.as_nanos(),
        bound_ns: late.bound.as_nanos(),
    };
    SchedulePunctuality {
        happened: planned.happened,
        late: planned.late,
        latest_ns: planned.latest.as_nanos(),
        worst: planned.worst.iter().map(late).collect(),
    }
}

fn lost(lost: &LostMachine) -> LostHost {
    LostHost {
        host: lost.host.clone(),
        nodes: lost.nodes,
        since_ns: lost.since.map(Span::as_nanos),
        why: lost.why.clone(),
    }
}

fn peer(part: &PartEvidence<'_>, peer: &PeerTraffic) -> PeerTrafficReport {
    let PeerTraffic { member, sent, received, silences, .. } = peer;
    let silent = silences.iter().map(|(from, to)| to.saturating_sub(*from).as_nanos());
    PeerTrafficReport {
        host: part.members.get(usize::from(*member)).cloned().unwrap_or_default(),
        sent_datagrams: sent.datagrams,
        sent_packets: sent.packets,
        sent_bytes: sent.bytes,
        received_datagrams: received.datagrams,
        received_packets: received.packets,
        received_bytes: received.bytes,
        silent_ns: silent.sum(),
        clock: clocks::of_peer(part, *member),
    }
}

fn flow_starts(announced: u64, seen: &LatenessHistogram) -> FlowStarts {
    let lateness::LatenessSummary { packets, p50_ns, p99_ns, max_ns, .. } = seen.summary();
    let mean_ns = seen.mean().as_nanos();
    FlowStarts { announced, flows: packets, mean_ns, p50_ns, p99_ns, max_ns }
}

fn machine(evidence: &RunEvidence<'_>) -> MachineReport {
    let tally = evidence.tally;
    MachineReport {
        cpus: machine_limits::cpus().map_or(1, |cpus| cpus.len()),
        kernel_drops: total(tally.kernel_drops.iter().map(|(_, drops)| drops)),
        kernel_refused: tally.refused.saturating_add(evidence.device_drops.packets),
        overloads: tally.overloads.times,
        overloaded_ns: tally.overloads.lasted.as_nanos(),
        overload_worst_ns: tally.overloads.furthest.as_nanos(),
        stalls: tally.stalls.times,
        stall_worst_ns: tally.stalls.longest.as_nanos(),
        freezes: evidence.freezes.times,
        frozen_ns: evidence.freezes.lasted.as_nanos(),
        real_time: tally.real_time,
        engine_ran_ns: tally.ran_ns,
        engine_waited_ns: tally.waited_ns,
        busy_percent: busy_percent(evidence.processors),
        stolen_ns: evidence.stolen().as_nanos(),
        records_lost: evidence.recorded.lost,
        reports_lost: total([tally.lost_reports.events, tally.lost_reports.handoffs]),
    }
}

fn programs(evidence: &RunEvidence<'_>) -> Vec<ProgramReport> {
    let all = evidence.programs.iter();
    all.map(|(&key, program)| {
        let volume = evidence.carried.volumes.get(&key).copied().unwrap_or_default();
        let (ended, exit) = ending(program);
        ProgramReport {
            node: evidence.plan.nodes[key.node].name.clone(),
            program: key.program,
            argv: program.spec.argv.clone(),
            daemon: program.spec.daemon,
            failed: has_failed(evidence, key, program),
            starts: program.starts,
            started_ns: program.started_at.map(Span::as_nanos),
            ready_ns: program.ready_at.map(Span::as_nanos),
            exited_ns: exit.and(program.exited_at).map(Span::as_nanos),
            exit,
            ended,
            output_bytes: volume.bytes,
            output_discarded_bytes: volume.discarded,
        }
    })
    .collect()
}

fn link(
    plan: &Plan,
    lane: Lane,
    result: &LaneResult,
    peak_bytes_per_s: u64,
    late_above: Span,
) -> LinkReport {
    let spec = &plan.links[lane.link.index()];
    let asked = &spec.profiles[lane.direction.index()];
    let counters = &result.counters;
    let peak = peak_bytes_per_s.saturating_mul(8);
    LinkReport {
        link: spec.name.clone(),
        direction: plan.lane_name(lane),
        asked: asked.clone(),
        queue: asked.effective_queue().map(|limit| limit.to_string()),
        offered_packets: counters.offered_packets,
        offered_bytes: counters.offered_bytes,
        delivered_packets: counters.delivered_packets,
        delivered_bytes: counters.delivered_bytes,
        dropped_packets: dropped(counters),
        duplicated_packets: counters.duplicated,
        fragmented_packets: counters.fragmented,
        fragments_packets: counters.fragments,
        corrupted_packets: counters.corrupted,
        reordered_packets: counters.reordered,
        marked_packets: counters.marked,
        in_flight_packets: in_flight(result),
        queue_max_packets: counters.queue_packets_max,
        queue_max_bytes: counters.queue_bytes_max,
        achieved: AchievedLinkFigures {
            rate_peak_bit_per_s: (counters.delivered_packets > 0).then_some(peak),
            ..achieved(counters, &result.lateness)
        },
        lateness: result.lateness.summary(),
        late_packets: result.lateness.later_than(late_above),
        phases: phases(result),
    }
}

/// By the conservation law on [`windtunnel_engine::LaneCounters`].
fn in_flight(result: &LaneResult) -> u64 {
    let c = &result.counters;
    let entered = total([c.offered_packets, c.duplicated, c.fragments]);
    let entered = entered.saturating_sub(c.fragmented);
    entered.saturating_sub(total([c.delivered_packets, c.dropped.total()]))
}

/// The phases of a direction, each with what was counted in it.
fn phases(result: &LaneResult) -> Vec<LinkPhaseReport> {
    let (mut from, mut before) = (Time::ZERO, LaneCounters::default());
    let mut phases = Vec::new();
    for phase in &result.phases {
        let counters = phase.counters.since(&before);
        phases.push(LinkPhaseReport {
            from_ns: from.as_nanos(),
            until_ns: phase.until.as_nanos(),
            asked: phase.asked.clone(),
            offered_packets: counters.offered_packets,
            delivered_packets: counters.delivered_packets,
            dropped_packets: dropped(&counters),
            achieved: achieved(&counters, &phase.lateness),
            lateness: phase.lateness.summary(),
        });
        (from, before) = (phase.until, phase.counters);
    }
    phases
}

fn dropped(counters: &LaneCounters) -> BTreeMap<String, u64> {
    let dropped = counters.dropped.iter().filter(|(_, packets)| *packets > 0);
    dropped.map(|(why, packets)| (why.name().to_owned(), packets)).collect()
}

/// What there is evidence of. Without it there is no figure: not what was asked either.
fn achieved(c: &LaneCounters, lateness: &LatenessHistogram) -> AchievedLinkFigures {
    let ratio = |part: u64, whole: u64, scale: u64| {
        let scaled = u128::from(part) * u128::from(scale);
        scaled.checked_div(u128::from(whole)).and_then(|value| u64::try_from(value).ok())
    };
    // What the loss element saw: everything offered that was not turned away before it.
    let before_loss = [DropReason::Down, DropReason::Partition, DropReason::Mtu];
    let turned_away = total(before_loss.iter().map(|&reason| c.dropped[reason]));
    let offered_to_loss = c.offered_packets.saturating_sub(turned_away);
    let loss = ratio(c.dropped[DropReason::Loss], offered_to_loss, 1_000_000_000);
    let rate = ratio(c.backlogged_wire_bytes, c.backlogged_ns, 8_000_000_000);
    AchievedLinkFigures {
        latency_mean_ns: ratio(c.delay_sum_ns, c.delay_count, 1)
            .map(|delay| delay.saturating_add(lateness.mean().as_nanos())),
        rate_busy_bit_per_s: rate.filter(|_| c.backlogged_packets >= BACKLOGGED_LEAST),
        rate_peak_bit_per_s: None,
        loss_ppb: loss.and_then(|ppb| u32::try_from(ppb).ok()),
    }
}

fn router(name: &str, counters: &RouterCounters) -> RouterReport {
    let RouterCounters {
        forwarded,
        ttl_expired,
        no_route,
        not_forwarded,
        malformed,
        echo_answered,
        icmp_sent,
        redirected,
        replica_lost,
        translated,
        filtered,
        no_mapping,
        exhausted,
        untranslatable,
        fragments,
        reassembled,
        not_reassembled,
    } = *counters;
    let packets = [
        ("forwarded", forwarded),
        ("ttl_expired", ttl_expired),
        ("no_route", no_route),
        ("not_forwarded", not_forwarded),
        ("malformed", malformed),
        ("echo_answered", echo_answered),
        ("icmp_sent", icmp_sent),
    ];
    // Where there are no services or middleboxes, they are not spoken of.
    let of_few = [
        ("redirected", redirected),
        ("replica_lost", replica_lost),
        ("translated", translated),
        ("filtered", filtered),
        ("no_mapping", no_mapping),
        ("exhausted", exhausted),
        ("untranslatable", untranslatable),
        ("fragments", fragments),
        ("reassembled", reassembled),
        ("not_reassembled", not_reassembled),
    ];
    let of_few = of_few.into_iter().filter(|(_, count)| *count > 0);
    let packets = packets.into_iter().chain(of_few);
    let packets: BTreeMap<_, _> = packets.map(|(name, n)| (name.to_owned(), n)).collect();
    RouterReport { router: name.to_owned(), packets, nat: None }
}

fn nat(evidence: &RunEvidence<'_>, router: RouterId) -> Option<RouterNat> {
    let planned = evidence.plan.middlebox(router)?.nat.as_ref()?;
    let tally = evidence.tally.nats.iter().find(|it| it.router == router)?;
    let count = |held: usize| u64::try_from(held).unwrap_or(u64::MAX);
    Some(RouterNat {
        kind: planned.nat_type().into(),
        mappings_made: tally.counters.mappings_made,
        mappings_expired: tally.counters.mappings_expired,
        mappings_held: count(tally.held.0),
        sessions_made: tally.counters.sessions_made,
        sessions_held: count(tally.held.1),
        mappings_unlisted: tally.counters.ended_lost,
    })
}

/// Fewer packets right behind one another say nothing of a rate.
const BACKLOGGED_LEAST: u64 = 10;

/// What came to nodes that pay for receiving.
fn received(evidence: &RunEvidence<'_>) -> Vec<NodeReceived> {
    let one = |received: &ReceiveQueueCounters| NodeReceived {
        node: evidence.plan.nodes[received.node].name.clone(),
        came: received.came,
        delivered: received.delivered(),
        dropped_full: received.dropped_full,
        dropped_early: received.dropped_early,
        overflowed: received.overflowed,
        computed_ns: received.computed_ns,
    };
    evidence.tally.received.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use windtunnel_model::LinkProfile;

    use super::*;
    use windtunnel_dataplane::phase::LanePhase;

    #[test]
    fn nothing_is_achieved_where_nothing_was_there_to_measure() {
        let idle =
            LaneCounters { transmitted_wire_bytes: 300, busy_ns: 2_400, ..Default::default() };
        assert_eq!(achieved(&idle, &LatenessHistogram::new()), AchievedLinkFigures::default());
        let mut down = LaneCounters { offered_packets: 9, ..idle };
        down.dropped[DropReason::Down] = 9;
        assert_eq!(achieved(&down, &LatenessHistogram::new()), AchievedLinkFigures::default());
    }

    #[test]
    fn a_rate_is_achieved_by_packets_that_follow_one_another_and_by_no_fewer_than_ten() {
        let backlogged = |packets| LaneCounters {
            backlogged_packets: packets,
            backlogged_wire_bytes: packets * 1250,
            backlogged_ns: packets * 1_000_000,
            ..Default::default()
        };
        let rate =
            |packets| achieved(&backlogged(packets), &LatenessHistogram::new()).rate_busy_bit_per_s;
        assert_eq!((rate(9), rate(10)), (None, Some(10_000_000)));
    }

    #[test]
    fn each_phase_has_what_was_counted_in_it_beside_what_was_asked_in_it() {
        let phase = |until_ms: u64, latency_ms, delay_count, delay_ms: u64| LanePhase {
            until: Time::ZERO + Span::from_millis(until_ms),
            asked: LinkProfile { latency: Span::from_millis(latency_ms), ..LinkProfile::default() },
            counters: LaneCounters {
                delivered_packets: delay_count,
                delay_count,
                delay_sum_ns: delay_ms * 1_000_000,
                ..LaneCounters::default()
            },
            lateness: LatenessHistogram::new(),
        };
        // 10 packets with 10 ms each, then 5 with 40 ms each.
        let result = LaneResult {
            no_memory: 0,
            counters: LaneCounters::default(),
            lateness: LatenessHistogram::new(),
            late: None,
            phases: vec![phase(1000, 10, 10, 100), phase(1500, 40, 15, 300)],
            series: None,
        };
        let found = phases(&result);
        let figures = |phase: &LinkPhaseReport| {
            (phase.until_ns, phase.delivered_packets, phase.achieved.latency_mean_ns)
        };
        assert_eq!(figures(&found[0]), (1_000_000_000, 10, Some(10_000_000)));
        assert_eq!(figures(&found[1]), (1_500_000_000, 5, Some(40_000_000)));
        assert_eq!(
            (found[1].from_ns, found[1].asked.latency),
            (1_000_000_000, Span::from_millis(40))
        );
    }
}
