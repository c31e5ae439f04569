//! The mesh in worlds made for one question each.

use windtunnel_mesh::config::Detection;
use windtunnel_mesh::{AgentId, Ending, Event, LossCause, Part, PlanHash, RunId};
use windtunnel_model::flow::{Flow, FlowKey, FlowTerms};
use windtunnel_model::{Bytes, NodeId, Span, Time};
use windtunnel_simlab::mesh::machine::Machine;
use windtunnel_simlab::mesh::measure::{self, AgentState, Load, RUN};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

const PLAN: PlanHash = PlanHash([1; 32]);
const SECOND: Span = Span::from_secs(1);

fn key(number: u32) -> FlowKey {
    FlowKey { source: NodeId(0), destination: NodeId(1), number }
}

fn flow() -> Flow {
    Flow {
        terms: FlowTerms::new(Span::from_millis(40)).with_window(Bytes(65_536)),
        since: Time::ZERO,
    }
}

/// The part that a machine's agent takes another's to have.
fn part(world: &MeshWorld, machine: usize, of: usize) -> Part {
    let agent = world.machines()[of].agent;
    let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
    mesh.members(RUN).find(|member| member.agent == agent).expect("a member").part
}

fn flows(world: &MeshWorld, machine: usize) -> usize {
    world.machines()[machine].mesh.as_ref().map_or(0, |mesh| mesh.flows(RUN).count())
}

fn settle(world: &mut MeshWorld) -> Span {
    world.settle(Span::from_secs(30)).unwrap_or_else(|found| panic!("{found}"))
}

#[test]
fn lost_members_of_a_run_are_noticed_by_all_within_a_second() {
    for (agents, kills) in [(2, 60), (16, 30), (100, 6)] {
        let bound = Detection::default().noticed_within(agents);
        assert!(bound <= SECOND);
        for loss in [0, 50_000] {
            let conditions = LinkConditions::LAN.losing(loss);
            let times = measure::losses(agents, conditions, kills, 7, AgentState::Run);
            let worst = times.0.last().copied().expect("kills");
            assert!(worst <= bound, "{agents} agents, {loss} ppm lost: {worst} over {bound}");
        }
    }
}

#[test]
fn lost_agents_without_a_run_are_noticed_by_their_neighbours() {
    let bound = Detection::idle().noticed_by_neighbours_within();
    assert_eq!(bound, Span::from_millis(5000 + 3000 + 500));
    for (agents, kills) in [(2, 20), (16, 10), (100, 4)] {
        for loss in [0, 50_000] {
            let conditions = LinkConditions::LAN.losing(loss);
            let times = measure::losses(agents, conditions, kills, 7, AgentState::Idle);
            let worst = times.0.last().copied().expect("kills");
            assert!(worst <= bound, "{agents} agents, {loss} ppm lost: {worst} over {bound}");
        }
    }
}

#[test]
fn members_far_away_are_asked_no_more_than_near_ones_and_their_loss_is_noticed() {
    let far = LinkConditions { delay: Span::from_millis(40), ..LinkConditions::LAN };
    let sent = |conditions| measure::quiet(6, conditions, Span::from_secs(10), 1).0.datagrams;
    let (near_sent, far_sent) = (sent(LinkConditions::LAN), sent(far));
    assert!(far_sent <= near_sent, "{far_sent} datagrams a second, near {near_sent}");
    let bound = Detection::for_rtt(Span::from_millis(81)).noticed_within(6);
    let times = measure::losses(6, far, 10, 7, AgentState::Run);
    let worst = times.0.last().copied().expect("kills");
    assert!(worst <= bound, "{worst} over {bound}");
}

#[test]
fn agents_without_a_run_send_little_and_to_few() {
    // A second: one probe and one comparison of lists to a neighbour, one answer to an agent with
    // this one as a neighbour (three ask it once in three seconds, and randomly a few more), and
    // now and then a time stamp.
    for agents in [3, 12, 30, 100] {
        let (sent, spoken) = measure::idle(agents, LinkConditions::LAN, Span::from_secs(30), 1);
        assert!(sent.datagrams <= 8, "{agents} agents: {} datagrams a second", sent.datagrams);
        // QUIC's 30 bytes for each of them included.
        let bits = sent.bits + 8 * 30 * sent.datagrams;
        assert!(bits < 10_000, "{agents} agents: {bits} bit/s");
        // Three neighbours, those that have it as one, and two at random in 30 s, the time for
        // which a connection is kept.
        assert!(spoken <= 25.min(agents), "{agents} agents: speaks to {spoken}");
    }
}

#[test]
fn no_agent_is_declared_lost_at_a_loss_of_five_percent() {
    // By the model a pair of agents suspects 2 to 3 times a second, 16 agents each once in 66 s.
    for (agents, seconds, state) in [
        (2, 300, AgentState::Run),
        (3, 200, AgentState::Run),
        (16, 60, AgentState::Run),
        (2, 3000, AgentState::Idle),
        (16, 600, AgentState::Idle),
    ] {
        let conditions = LinkConditions::LAN.losing(50_000);
        let mut world = match state {
            AgentState::Run => measure::in_run(agents, 3, conditions),
            AgentState::Idle => MeshWorld::of(agents, 3, conditions),
        };
        world.run_for(Span::from_secs(seconds));
        assert_eq!(world.false_alarms(), 0, "{agents} agents");
        assert_eq!(world.difference(), None);
        let renewed = world.machines().iter().map(|machine| machine.view.renewals).sum::<u64>();
        assert_eq!(renewed, 0, "no agent received that it is lost either");
    }
}

#[test]
fn agents_that_get_a_processor_only_now_and_then_declare_no_other_lost() {
    // As on a machine with far more work than processors: each is away for up to 450 ms, again and
    // again, which is less than a suspected agent has to object.
    for seed in 0..8 {
        let mut world = measure::in_run(16, seed, LinkConditions::LAN);
        for step in 0..400 {
            let (index, away) = (step * 7 % 16, 100 + step as u64 * 37 % 350);
            world.stall(index, Span::from_millis(away));
            world.run_for(Span::from_millis(35));
        }
        world.run_for(SECOND);
        assert_eq!(world.false_alarms(), 0, "seed {seed}");
        let stalls =
            |machine: &Machine| machine.mesh.as_ref().map_or(0, |mesh| mesh.counters().stalls);
        assert!(world.machines().iter().map(stalls).sum::<u64>() > 100);
    }
}

#[test]
fn an_agent_that_was_away_for_long_declares_no_other_lost_and_is_lost_itself() {
    for seed in 0..20 {
        let mut world = measure::in_run(4, seed, LinkConditions::LAN);
        let away = world.machines()[3].address;
        world.take_events();
        world.stall(3, Span::from_millis(1500));
        world.run_for(Span::from_secs(4));
        let downs = world.take_events().into_iter().filter_map(|report| match report.event {
            Event::AgentDown { life, .. } => Some((report.machine, life.address)),
            _ => None,
        });
        let downs: Vec<_> = downs.collect();
        assert!((0..3).all(|machine| downs.contains(&(machine, away))), "{downs:?}");
        assert!(downs.iter().all(|(machine, _)| *machine != 3), "seed {seed}: {downs:?}");
    }
}

#[test]
fn an_agent_that_is_always_late_still_notices_a_loss() {
    let mut world = measure::in_run(2, 1, LinkConditions::LAN);
    let late = Span::from_millis(60);
    world.crash(1);
    let begin = world.now();
    while world.machines()[0].mesh.as_ref().is_some_and(|mesh| mesh.agents().count() > 0) {
        world.stall(0, late);
        world.run_for(late + Span::from_millis(1));
        assert!(world.now().since(begin) < Span::from_secs(60));
    }
}

#[test]
fn a_flow_is_known_to_all_sixteen_agents_within_the_targets() {
    // Deltas wait 2 ms at the most, and mostly not at all: 18.75 starts and ends a second of each
    // agent come with 37.5 · 2 ms = 7.5 % within the time of a batch. Network: 50 µs in the
    // mean, 60 at the most.
    let span = Span::from_secs(5);
    let load =
        Load { machines: 16, nodes: 150, starts: 300, span, conditions: LinkConditions::LAN };
    let result = measure::spread(&load, 5);
    assert!(result.known.0.len() > 15 * 1200, "{}", result.known.0.len());
    assert!(result.known.mean() < Span::from_micros(50 + 150), "{}", result.known.mean());
    assert!(result.known.percentile(99) <= Span::from_micros(2060));
    assert_eq!(result.counters.repairs, 0);
    // 1 Gbit/s: a thousandth is 1 Mbit/s, QUIC's 30 bytes a datagram included.
    let bits = result.sent.bits + 8 * 30 * result.sent.datagrams;
    assert!(bits < 1_000_000, "{bits} bit/s");
}

#[test]
fn lost_announcements_are_repaired_and_cost_no_more_than_a_quarter_of_a_second() {
    let span = Span::from_secs(5);
    let conditions = LinkConditions::LAN.losing(20_000);
    let load = Load { machines: 16, nodes: 150, starts: 300, span, conditions };
    let result = measure::spread(&load, 6);
    assert!(result.counters.repairs > 0);
    assert!(result.known.percentile(95) < Span::from_millis(5), "{}", result.known.percentile(95));
    assert!(result.known.percentile(99) < Span::from_millis(50), "{}", result.known.percentile(99));
    let worst = result.known.0.last().copied().expect("flows");
    assert!(worst < Span::from_millis(250), "{worst}");
}

#[test]
fn a_flow_is_announced_only_to_its_audience() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[2]);
    world.run_for(Span::from_millis(1));
    assert_eq!([1, 2, 3].map(|machine| flows(&world, machine)), [0, 1, 0]);
    let sent = |world: &MeshWorld| {
        let mesh = world.machines()[0].mesh.as_ref().expect("it lives");
        mesh.counters().flows.datagrams
    };
    let before = sent(&world);
    world.set_flow(0, RUN, key(1), flow(), &[2]);
    assert_eq!(sent(&world), before, "nothing is new");
    world.end_flow(0, RUN, key(1));
    world.run_for(Span::from_millis(3));
    assert_eq!((flows(&world, 2), sent(&world)), (0, before + 1));
}

/// Messages about flows that a machine has sent.
fn flow_messages(world: &MeshWorld, machine: usize) -> u64 {
    let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
    let counters = mesh.counters();
    counters.flows.datagrams
}

/// A run of 16 machines on a star: node n is on machine n % 16, and the links of nodes are all that
/// there is to share.
fn star(conditions: LinkConditions) -> MeshWorld {
    let mut world = measure::in_run(16, 1, conditions);
    for machine in 0..16 {
        let nodes = (0..150).filter(|node| node % 16 == machine).map(NodeId);
        world.set_nodes(machine as usize, RUN, nodes.collect());
    }
    world
}

const ALL: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

fn between(source: u32, destination: u32) -> FlowKey {
    FlowKey { source: NodeId(source), destination: NodeId(destination), number: 0 }
}

#[test]
fn a_short_flow_on_a_star_is_two_messages_and_not_thirty() {
    // Its start and its end, to the machine of its destination; within a quarter of a second it is
    // over.
    let mut world = star(LinkConditions::LAN);
    world.run_for(SECOND);
    let before: u64 = ALL.iter().map(|machine| flow_messages(&world, *machine)).sum();
    for number in 0..100_u32 {
        let (source, destination) = (number % 150, (number * 7 + 1) % 150);
        let (from, home) = ((source % 16) as usize, (destination % 16) as usize);
        let key = between(source, destination);
        world.set_flow_for(from, RUN, (key, flow()), &[home], &ALL);
        world.run_for(Span::from_millis(200));
        world.end_flow(from, RUN, key);
        world.run_for(Span::from_millis(100));
    }
    let sent = ALL.iter().map(|machine| flow_messages(&world, *machine)).sum::<u64>() - before;
    assert!(sent <= 200, "{sent} messages for 100 flows");
    settle(&mut world);
}

#[test]
fn a_flow_that_stays_is_known_to_all_soon_and_to_its_destination_at_once() {
    let mut world = star(LinkConditions::LAN);
    world.run_for(SECOND);
    world.set_flow_for(3, RUN, (between(3, 20), flow()), &[4], &ALL);
    world.run_for(Span::from_millis(1));
    assert_eq!(ALL.map(|machine| flows(&world, machine)).iter().sum::<usize>(), 1);
    assert_eq!(flows(&world, 4), 1);
    world.run_for(Span::from_millis(250));
    assert_eq!(ALL.map(|machine| flows(&world, machine)).iter().sum::<usize>(), 15);
    assert_eq!(world.difference(), None);
}

#[test]
fn machines_with_flows_that_meet_at_a_node_know_each_others_within_three_trips() {
    for conditions in [LinkConditions::LAN, LinkConditions::LAN.losing(20_000)] {
        let mut world = star(conditions);
        for round in 0..50_u32 {
            let (a, b, to) = (between(1, 20), between(2, 20), 4);
            world.run_for(SECOND);
            world.set_flow_for(1, RUN, (a, flow()), &[to], &ALL);
            // The other one comes before the first is announced to all.
            world.run_for(Span::from_millis(u64::from(1 + round)));
            world.set_flow_for(2, RUN, (b, flow()), &[to], &ALL);
            // To the destination's machine, from there to the two, from each to the other: 60 µs at
            // the most each, and each may wait 2 ms for a batch.
            world.run_for(Span::from_micros(3 * 60 + 3 * 2000));
            if conditions == LinkConditions::LAN {
                assert_eq!([1, 2, to].map(|machine| flows(&world, machine)), [1, 1, 2]);
                assert_eq!(flows(&world, 7), 0, "no other agent needs to know");
            }
            settle(&mut world);
            for (machine, key) in [(1, a), (2, b)] {
                world.end_flow(machine, RUN, key);
            }
            settle(&mut world);
        }
    }
}

#[test]
fn the_first_change_leaves_at_once_and_the_next_together_after_the_time_of_a_batch() {
    let still =
        LinkConditions { delay: Span::from_micros(50), jitter: Span::ZERO, ..LinkConditions::LAN };
    let mut world = measure::in_run(2, 1, still);
    world.run_for(SECOND);
    let begin = world.now();
    world.take_events();
    for number in 0..5 {
        world.set_flow(0, RUN, key(number), flow(), &[1]);
    }
    world.run_for(Span::from_millis(5));
    let reported: Vec<_> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            Event::Flows { changes, .. } => Some((report.at.since(begin), changes.len())),
            _ => None,
        })
        .collect();
    // Clocks differ by up to 200 ppm: 0.4 µs of 2 ms.
    assert_eq!(reported.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(reported[0].0, Span::from_micros(50));
    let late = reported[1].0.as_nanos().abs_diff(2_050_000);
    assert!(late < 500, "{}", reported[1].0);
}

#[test]
fn a_killed_agent_takes_its_flows_along_and_comes_back_empty() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.run_for(Span::from_millis(1));
    assert_eq!((flows(&world, 1), flows(&world, 2)), (1, 1));
    world.crash(0);
    world.run_for(SECOND);
    assert_eq!((flows(&world, 1), flows(&world, 2)), (0, 0));
    assert_eq!((part(&world, 1, 0), part(&world, 2, 0)), (Part::Lost, Part::Lost));
    world.start(0, &[1]);
    settle(&mut world);
    // The plan may be the same; the run goes on without it.
    world.join_run(0, RUN, PLAN, &[0, 1, 2]);
    settle(&mut world);
    assert_eq!((part(&world, 1, 0), part(&world, 0, 1)), (Part::Lost, Part::Lost));
}

#[test]
fn an_agent_that_restarts_faster_than_it_is_missed_is_a_new_life_all_the_same() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.run_for(Span::from_millis(100));
    world.take_events();
    world.crash(0);
    world.run_for(Span::from_millis(10));
    world.start(0, &[1]);
    settle(&mut world);
    let agent = world.machines()[0].agent;
    for machine in [1, 2] {
        let events: Vec<_> =
            world.take_events().into_iter().filter(|report| report.machine == machine).collect();
        let over = |event: &Event| matches!(event, Event::AgentDown { life, how: Ending::Replaced } if life.agent == agent);
        assert!(machine == 2 || events.iter().any(|report| over(&report.event)), "{events:?}");
        assert_eq!((flows(&world, machine), part(&world, machine, 0)), (0, Part::Lost));
    }
}

#[test]
fn an_agent_with_a_clock_set_back_over_a_restart_comes_in_all_the_same() {
    let mut world = MeshWorld::of(3, 1, LinkConditions::LAN);
    world.crash(0);
    world.run_for(SECOND);
    // The next start would have a greater number; this one has a smaller.
    world.start_as(0, 5, &[1]);
    let took = settle(&mut world);
    assert!(took < SECOND, "{took}");
    let life = world.machines()[0].mesh.as_ref().expect("it lives").identity();
    assert_eq!((life.epoch, world.machines()[0].view.renewals), (1_000_001, 1));
}

#[test]
fn both_sides_of_a_cut_network_go_on_by_themselves_also_after_it_is_mended() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    for machine in 0..4 {
        let number = u32::try_from(machine).expect("small");
        world.set_flow(machine, RUN, key(number), flow(), &[0, 1, 2, 3]);
    }
    settle(&mut world);
    assert_eq!((0..4).map(|machine| flows(&world, machine)).collect::<Vec<_>>(), [3; 4]);
    world.cut(&[0, 0, 1, 1]);
    world.run_for(SECOND);
    assert_eq!((0..4).map(|machine| flows(&world, machine)).collect::<Vec<_>>(), [1; 4]);
    world.heal();
    let took = settle(&mut world);
    assert!(took <= Span::from_secs(4), "they find each other after {took}");
    for (one, other) in [(0, 1), (2, 3)] {
        assert_eq!(
            (part(&world, one, other), part(&world, other, one)),
            (Part::Confirmed, Part::Confirmed)
        );
    }
    for (one, other) in [(0, 2), (1, 3), (0, 3), (1, 2)] {
        assert_eq!((part(&world, one, other), part(&world, other, one)), (Part::Lost, Part::Lost));
    }
}

#[test]
fn an_agent_that_cannot_send_for_a_while_is_cut_off_and_knows_it() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    world.cut(&[1, 0, 0]);
    world.run_for(SECOND);
    world.take_events();
    world.heal();
    settle(&mut world);
    // Alone, it had lost the others too. Either side may begin a new life; the two with a
    // connection have not lost each other.
    let renewals: u64 = world.machines().iter().map(|machine| machine.view.renewals).sum();
    assert!(renewals > 0);
    assert_eq!(
        (part(&world, 0, 1), part(&world, 1, 0), part(&world, 1, 2)),
        (Part::Lost, Part::Lost, Part::Confirmed)
    );
}

#[test]
fn another_plan_is_refused_with_both_hashes_and_the_agent() {
    let mut world = MeshWorld::of(3, 1, LinkConditions::LAN.losing(50_000));
    let other = PlanHash([2; 32]);
    world.take_events();
    for (machine, plan) in [(0, PLAN), (1, PLAN), (2, other)] {
        world.join_run(machine, RUN, plan, &[0, 1, 2]);
    }
    settle(&mut world);
    let events = world.take_events();
    for (machine, agent, ours, theirs) in
        [(0, 2, PLAN, other), (1, 2, PLAN, other), (2, 0, other, PLAN), (2, 1, other, PLAN)]
    {
        let agent = world.machines()[agent].agent;
        let refusals = events.iter().filter(|report| {
            report.machine == machine
                && matches!(&report.event, Event::RunRefused { run: RUN, agent: a, ours: o, theirs: t, .. }
                    if (*a, *o, *t) == (agent, ours, theirs))
        });
        assert_eq!(refusals.count(), 1, "machine {machine} about {agent}");
    }
    let ready = events.iter().any(|report| matches!(report.event, Event::RunReady { .. }));
    assert!(!ready, "a run is not ready with a member that has another plan");
}

#[test]
fn a_run_is_ready_for_all_when_the_last_member_has_come() {
    let mut world = MeshWorld::of(4, 1, LinkConditions::LAN.losing(20_000));
    for machine in [0, 1, 2] {
        world.join_run(machine, RUN, PLAN, &[0, 1, 2, 3]);
    }
    world.run_for(SECOND);
    let ready = |world: &MeshWorld, machine: usize| {
        world.machines()[machine].mesh.as_ref().is_some_and(|mesh| mesh.is_ready(RUN))
    };
    assert!((0..4).all(|machine| !ready(&world, machine)));
    assert_eq!((part(&world, 0, 1), part(&world, 0, 3)), (Part::Confirmed, Part::Waiting));
    world.join_run(3, RUN, PLAN, &[0, 1, 2, 3]);
    settle(&mut world);
    assert!((0..4).all(|machine| ready(&world, machine)));
    world.leave_run(2, RUN);
    settle(&mut world);
    assert!(!ready(&world, 0) && part(&world, 0, 2) == Part::Left);
}

#[test]
fn a_late_joiner_receives_ten_thousand_flows() {
    let mut world = MeshWorld::of(2, 1, LinkConditions::LAN.losing(10_000));
    world.join_run(0, RUN, PLAN, &[0, 1]);
    for number in 0..10_000 {
        world.set_flow(0, RUN, key(number), flow(), &[1]);
    }
    world.join_run(1, RUN, PLAN, &[0, 1]);
    let took = settle(&mut world);
    assert_eq!(flows(&world, 1), 10_000);
    // 10 000 entries of 18 bytes are 160 datagrams, eight each 2 ms.
    assert!(took < SECOND, "{took}");
}

#[test]
fn changes_of_one_run_do_not_appear_in_another() {
    let mut world = measure::in_run(3, 1, LinkConditions::LAN);
    let second = RunId(2);
    for machine in 0..3 {
        world.join_run(machine, second, PlanHash([3; 32]), &[0, 1, 2]);
    }
    settle(&mut world);
    world.set_flow(0, RUN, key(1), flow(), &[1, 2]);
    world.set_flow(0, second, key(2), flow(), &[1]);
    world.leave_run(2, second);
    settle(&mut world);
    let mesh = world.machines()[1].mesh.as_ref().expect("it lives");
    let of = |run| mesh.flows(run).map(|(_, key, _)| key.number).collect::<Vec<_>>();
    assert_eq!((of(RUN), of(second)), (vec![1], vec![2]));
    assert_eq!(flows(&world, 2), 1);
}

#[test]
fn an_agent_that_leaves_is_gone_at_once_and_is_not_reported_lost() {
    let mut world = MeshWorld::of(5, 1, LinkConditions::LAN);
    world.take_events();
    let leaver = world.machines()[3].agent;
    world.leave(3);
    world.run_for(Span::from_millis(1));
    let endings: Vec<_> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            Event::AgentDown { life, how } => Some((life.agent, how)),
            _ => None,
        })
        .collect();
    assert_eq!(endings, vec![(leaver, Ending::Left); 4]);
}

#[test]
fn clocks_are_known_within_their_bounds_and_a_step_is_noticed() {
    let conditions = LinkConditions {
        delay: Span::from_micros(50),
        jitter: Span::from_micros(300),
        loss: 10_000,
        twice: 0,
    };
    let mut world = MeshWorld::new(9, conditions);
    for machine in 0..4 {
        world.add_machine();
        world.start(machine, &[0]);
    }
    settle(&mut world);
    for machine in 0..4 {
        world.join_run(machine, RUN, PLAN, &[0, 1, 2, 3]);
    }
    world.run_for(Span::from_secs(20));
    settle(&mut world);
    let read = |world: &MeshWorld, machine: usize, of: usize| {
        let own = world.machines()[machine].clock.read(world.now());
        let mesh = world.machines()[machine].mesh.as_ref().expect("it lives");
        mesh.clock(world.machines()[of].agent, own).expect("measured")
    };
    for (machine, of) in [(0, 1), (1, 2), (3, 0)] {
        let clock = read(&world, machine, of);
        // The least round trip is little over 100 µs, so the bound is little over 50.
        assert!(clock.error < Span::from_micros(150), "{clock:?}");
        assert!(clock.rtt_min >= Span::from_micros(100) && clock.rtt_min < Span::from_micros(400));
        assert!(clock.skew_ppb.abs() < 220_000 && clock.exchanges > 50, "{clock:?}");
    }
    world.take_events();
    world.step_clock(1, Span::from_millis(5));
    world.run_for(SECOND);
    let stepped = world.machines()[1].agent;
    let ahead = world.take_events().into_iter().filter_map(|report| match report.event {
        Event::ClockStepped { agent, by } if report.machine != 1 && agent == stepped => Some(by),
        _ => None,
    });
    let ahead: Vec<i64> = ahead.collect();
    assert_eq!(ahead.len(), 3, "each other agent, once: {ahead:?}");
    assert!(ahead.iter().all(|by| (by - 5_000_000).abs() < 300_000), "{ahead:?}");
    settle(&mut world);
}

#[test]
fn clocks_of_agents_without_a_common_run_are_compared_too() {
    let mut world = MeshWorld::of(3, 2, LinkConditions::LAN);
    world.run_for(Span::from_secs(40));
    settle(&mut world);
    for machine in world.machines() {
        let own = machine.clock.read(world.now());
        let mesh = machine.mesh.as_ref().expect("it lives");
        for life in mesh.agents() {
            let clock = mesh.clock(life.agent, own).expect("measured");
            assert!(clock.exchanges >= 3, "{clock:?}");
        }
    }
}

#[test]
fn round_trips_that_were_long_when_agents_met_are_measured_again_soon() {
    // Much begins at once: everything takes 100 ms, for a second.
    let busy = LinkConditions { delay: Span::from_millis(100), ..LinkConditions::LAN };
    let mut world = MeshWorld::of(6, 1, busy);
    world.run_for(SECOND);
    world.conditions = LinkConditions::LAN;
    world.run_for(Span::from_secs(45));
    for machine in world.machines() {
        let own = machine.clock.read(world.now());
        let mesh = machine.mesh.as_ref().expect("it lives");
        for life in mesh.agents() {
            let clock = mesh.clock(life.agent, own).expect("measured");
            assert!(clock.rtt_min < Span::from_millis(1), "{clock:?}");
        }
    }
}

#[test]
fn a_loss_that_one_agent_saw_is_agreed_on_by_all_members() {
    let mut world = measure::in_run(4, 1, LinkConditions::LAN);
    world.take_events();
    world.crash(3);
    world.run_for(Span::from_secs(3));
    let lost = world.machines()[3].agent;
    let reports: Vec<(usize, LossCause)> = world
        .take_events()
        .into_iter()
        .filter_map(|report| match report.event {
            Event::RunLost { agent, cause, .. } if agent == lost => Some((report.machine, cause)),
            _ => None,
        })
        .collect();
    let mut machines: Vec<usize> = reports.iter().map(|(machine, _)| *machine).collect();
    machines.sort_unstable();
    assert_eq!(machines, [0, 1, 2], "{reports:?}");
}

#[test]
fn a_world_of_two_hundred_agents_agrees_and_loses_none() {
    let mut world = measure::in_run(200, 4, LinkConditions::LAN.losing(10_000));
    let all: Vec<usize> = (0..200).collect();
    for machine in (0..200).step_by(10) {
        let number = u32::try_from(machine).expect("small");
        world.set_flow(machine, RUN, key(number), flow(), &all);
    }
    settle(&mut world);
    world.crash(10);
    world.run_for(SECOND);
    settle(&mut world);
    assert_eq!(world.false_alarms(), 0);
    let gone: AgentId = world.machines()[10].agent;
    let ghosts = world.machines().iter().filter_map(|machine| machine.mesh.as_ref());
    assert!(ghosts.flat_map(|mesh| mesh.flows(RUN)).all(|(agent, ..)| agent != gone));
}
