//! A replica dies in the middle of a connection.

use windtunnel_engine::{FailOverWhat, ReplicaFault};
use windtunnel_model::plan::ServiceUpdate;
use windtunnel_model::{NodeId, Span, Time};

use crate::ends::Ends;
use crate::network::{AT_FAR, AT_NEAR, FAR, NEAR, network, network_of, service};
use crate::programs::Program;
use crate::support::{delayed, rated};

const DOWNLOAD: Program = Program::Download { bytes: 400_000 };
const TALK: Program = Program::Reply { rounds: 12, bytes: 3_000 };

/// How a replica dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// Its link is cut, without a word of the host.
    Cut,
    /// Its node is gone, and the host knows.
    Known,
    /// Its program is killed.
    Killed,
}

fn die(ends: &mut Ends, at: Time, replica: u32, how: How) {
    let link = if replica == NEAR { AT_NEAR } else { AT_FAR };
    match how {
        How::Cut => ends.set_link(at, link, false),
        How::Known => {
            ends.set_link(at, link, false);
            ends.update(at, ServiceUpdate::Lost { replica: NodeId(replica) });
        }
        How::Killed => ends.kill(at, replica),
    }
}

/// Runs with a death at a time; the longest time in which the client's program read nothing.
fn with_death(program: Program, at: Time, replica: u32, how: How) -> (Ends, Span) {
    let mut ends = Ends::new(network(), service(), program);
    ends.run(at);
    die(&mut ends, at, replica, how);
    ends.finish();
    let silence = ends.program.silence;
    (ends, silence)
}

fn without_death(program: Program) -> Ends {
    let mut ends = Ends::new(network(), service(), program);
    ends.finish();
    assert_eq!(ends.what(), []);
    ends
}

/// Times from the SYN to the end, so many of them.
fn moments(end: Time, count: u64) -> impl Iterator<Item = Time> {
    let step = end.as_nanos() / (count + 1);
    (1..=count).map(move |number| Time::from_nanos(step * number))
}

#[test]
fn a_connection_without_a_death_is_that_of_its_replicas() {
    for program in [DOWNLOAD, TALK] {
        let ends = without_death(program);
        let counters = ends.counters();
        assert_eq!((counters.opened, counters.plain, counters.unusable), (1, 0, 0));
        assert_eq!(counters.expelled.total(), 0);
        assert_eq!(counters.delivered_bytes, program.replies().unwrap().len() as u64);
    }
}

#[test]
fn a_download_survives_the_death_of_either_replica_at_any_time() {
    for program in [DOWNLOAD, TALK] {
        let end = without_death(program).net.now;
        for replica in [NEAR, FAR] {
            for how in [How::Cut, How::Known, How::Killed] {
                let mut longest = Span::ZERO;
                for at in moments(end, 24) {
                    let (_, silence) = with_death(program, at, replica, how);
                    longest = longest.max(silence);
                }
                // 40 ms and four probes 20 ms apart, a round trip each before and after, and the
                // round trips of what was under way: 8 ms to the client, 8 ms to the farther
                // replica.
                let most = if how == How::Cut { 200 } else { 60 };
                assert!(longest <= Span::from_millis(most), "{program:?}, {how:?}: {longest:?}");
            }
        }
    }
}

#[test]
fn a_death_is_an_expulsion_a_promotion_and_a_resumption() {
    let at = Time::ZERO + Span::from_millis(40);
    let (ends, _) = with_death(DOWNLOAD, at, NEAR, How::Cut);
    let what = ends.what();
    let [
        FailOverWhat::Expelled {
            replica: NodeId(NEAR),
            fault: ReplicaFault::Silent,
            after,
            left: 1,
        },
        FailOverWhat::Promoted { replica: NodeId(FAR) },
        FailOverWhat::Resumed { silence },
    ] = what[..]
    else {
        panic!("{what:?}");
    };
    let counters = ends.counters();
    assert_eq!(counters.expelled.silent, 1);
    assert_eq!((counters.promoted, counters.resumed), (1, 1));
    assert_eq!(counters.detection_max_ns, after.as_nanos());
    assert_eq!(counters.silence_max_ns, silence.as_nanos());
    // 40 ms, three intervals and one more of 20 ms, and the round trip of 4 ms.
    assert!(after >= Span::from_millis(120) && after <= Span::from_millis(130), "{after:?}");
}

#[test]
fn a_node_that_is_known_to_be_gone_is_expelled_at_once() {
    let at = Time::ZERO + Span::from_millis(40);
    let (ends, _) = with_death(DOWNLOAD, at, NEAR, How::Known);
    let (when, news) = ends.news[0];
    assert!(
        matches!(news.what, FailOverWhat::Expelled { fault: ReplicaFault::Gone, .. }),
        "{news:?}"
    );
    assert!(when <= at + Span::from_millis(5), "{when}");
}

#[test]
fn a_client_of_no_replica_is_reset() {
    let mut ends = Ends::new(network(), service(), DOWNLOAD);
    let at = Time::ZERO + Span::from_millis(40);
    ends.run(at);
    die(&mut ends, at, NEAR, How::Known);
    die(&mut ends, at, FAR, How::Known);
    ends.run(Time::ZERO + Span::from_secs(5));
    assert!(ends.client.was_reset);
    assert_eq!(ends.what().last(), Some(&FailOverWhat::Lost));
    assert_eq!(ends.counters().lost, 1);
}

#[test]
fn deaths_beside_loss_and_queues_cost_no_byte() {
    for seed in 0..12 {
        let mut profile = delayed(Span::from_millis(1));
        profile.rate = rated(20_000_000).rate;
        profile.loss = windtunnel_model::profile::LossModel::Independent("1%".parse().unwrap());
        let mut plan = network_of(&profile);
        plan.seed = seed;
        let mut ends = Ends::new(plan, service(), DOWNLOAD);
        let at = Time::ZERO + Span::from_millis(30 + 11 * seed);
        ends.run(at);
        die(&mut ends, at, if seed % 2 == 0 { NEAR } else { FAR }, How::Cut);
        ends.finish();
    }
}

#[test]
fn uploads_over_loss_and_unequal_ways_go_on_in_time_that_never_goes_back() {
    // What the client sends again while the replicas are apart has them probed at once.
    let program = Program::Upload { bytes: 300_000 };
    for seed in 0..6 {
        let mut profile = delayed(Span::from_millis(1));
        profile.rate = rated(20_000_000).rate;
        profile.loss = windtunnel_model::profile::LossModel::Independent("1%".parse().unwrap());
        let mut plan = network_of(&profile);
        plan.seed = seed;
        let mut ends = Ends::new(plan, service(), program);
        ends.finish();
        assert_eq!(ends.what(), []);
    }
}
