//! What it costs.

use windtunnel_model::{LinkProfile, NodeId, Span, Time};

use crate::ends::Ends;
use crate::network::{BETWEEN, NEAR, network_of, service};
use crate::programs::Program;
use crate::support::{delayed, rated};

#[test]
fn two_replicas_are_nine_tenths_as_fast_as_one_or_more() {
    let time = |listen: &[NodeId]| {
        let mut profile = delayed(Span::from_millis(1));
        profile.rate = rated(50_000_000).rate;
        let mut plan = network_of(&profile);
        // Both replicas' output goes over this one.
        plan.links[BETWEEN as usize].profiles = [(), ()].map(|()| LinkProfile {
            rate: rated(200_000_000).rate,
            ..delayed(Span::from_millis(1))
        });
        let program = Program::Download { bytes: 4_000_000 };
        let mut ends = Ends::with(plan, service(), program, listen);
        ends.finish();
        ends.net.now.since(Time::ZERO)
    };
    let (one, two) = (time(&[NodeId(NEAR)]), time(&[NodeId(1), NodeId(2)]));
    let percent = one.as_nanos() * 100 / two.as_nanos();
    assert!(percent >= 90, "{percent} %: {one:?} with one, {two:?} with two");
}
