//! Losses: how soon they are noticed, and false alarms.

use windtunnel_mesh::MeshEvent;
use windtunnel_mesh::config::SwimParameters;
use windtunnel_model::Span;
use windtunnel_simlab::mesh::machine::SimulatedMachine;
use windtunnel_simlab::mesh::measure::{self, AgentState};
use windtunnel_simlab::mesh::{LinkConditions, MeshWorld};

use crate::SECOND;

#[test]
fn lost_members_of_a_run_are_noticed_by_all_within_a_second() {
    for (agents, kills) in [(2, 60), (16, 30), (100, 6)] {
        let bound = SwimParameters::default().noticed_within(agents);
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
    let bound = SwimParameters::idle().noticed_by_neighbours_within();
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
    let bound = SwimParameters::for_rtt(Span::from_millis(81)).noticed_within(6);
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
        let stalls = |machine: &SimulatedMachine| {
            machine.mesh.as_ref().map_or(0, |mesh| mesh.counters().stalls)
        };
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
            MeshEvent::AgentDown { life, .. } => Some((report.machine, life.address)),
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
