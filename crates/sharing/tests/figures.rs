//! SplayNet's own examples, to the bit a second.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use windtunnel_model::flow::FlowTerms;
use windtunnel_model::{Bytes, Rate, Span};
use windtunnel_sharing::{
    FlowId, FlowShareChange, MaxMinShares, ShareConstraint, SharingModelKind, allocate,
};

fn mbit(rate: u64) -> Option<Rate> {
    Rate::from_bits_per_second(rate * 1_000_000)
}

fn bits(rate: u64) -> Option<Rate> {
    Rate::from_bits_per_second(rate)
}

fn round_trip(millis: u64) -> FlowTerms {
    FlowTerms::new(Span::from_millis(millis))
}

/// The changes of a settled table, as flow and bits a second.
fn rates(changes: &[FlowShareChange]) -> Vec<(u64, u64)> {
    changes.iter().map(|change| (change.flow.0, change.share.unwrap().bits_per_second())).collect()
}

/// Figure 3.5. Node 0 sends over 0→1 (2 Mbit/s); 1→2 and 1→4 lead on; node 3 joins at 4; 4→5 is
/// shared by 0→5 and 3→5.
mod figure_3_5 {
    use super::*;

    const ZERO_ONE: u32 = 0;
    const ONE_TWO: u32 = 1;
    const ONE_FOUR: u32 = 2;
    const THREE_FOUR: u32 = 3;
    const FOUR_FIVE: u32 = 4;
    const ZERO_TO_TWO: FlowId = FlowId(2);
    const ZERO_TO_FIVE: FlowId = FlowId(5);
    const THREE_TO_FIVE: FlowId = FlowId(35);

    fn network() -> MaxMinShares<SharingModelKind> {
        MaxMinShares::new(SharingModelKind::RttAware, &[mbit(2); 5]).unwrap()
    }

    #[test]
    fn the_shorter_round_trip_gets_three_quarters() {
        let mut shares = network();
        shares.start(ZERO_TO_TWO, &[ZERO_ONE, ONE_TWO], round_trip(100)).unwrap();
        assert_eq!(rates(shares.settle()), [(2, 2_000_000)]);

        let path = [ZERO_ONE, ONE_FOUR, FOUR_FIVE];
        shares.start(ZERO_TO_FIVE, &path, round_trip(300)).unwrap();
        assert_eq!(rates(shares.settle()), [(2, 1_500_000), (5, 500_000)]);
        assert_eq!(shares.limit(ZERO_TO_FIVE), Some(ShareConstraint::Lane(ZERO_ONE)));

        shares.start(THREE_TO_FIVE, &[THREE_FOUR, FOUR_FIVE], round_trip(300)).unwrap();
        assert_eq!(rates(shares.settle()), [(35, 1_500_000)], "nothing changes for node 0");
        assert_eq!(shares.limit(THREE_TO_FIVE), Some(ShareConstraint::Lane(FOUR_FIVE)));
        assert_eq!(shares.given(ZERO_ONE), 2_000_000);
    }

    #[test]
    fn capacity_that_a_flow_leaves_goes_back() {
        let mut shares = network();
        shares.start(ZERO_TO_TWO, &[ZERO_ONE, ONE_TWO], round_trip(100)).unwrap();
        shares.start(ZERO_TO_FIVE, &[ZERO_ONE, ONE_FOUR, FOUR_FIVE], round_trip(300)).unwrap();
        shares.settle();
        shares.stop(ZERO_TO_TWO).unwrap();
        assert_eq!(rates(shares.settle()), [(5, 2_000_000)]);
    }

    #[test]
    fn equal_sharing_halves() {
        let paths: [(&[u32], FlowTerms); 2] =
            [(&[ZERO_ONE, ONE_TWO], round_trip(100)), (&[ZERO_ONE, ONE_FOUR], round_trip(300))];
        let shares = allocate(SharingModelKind::Equal, &[mbit(2); 5], &paths).unwrap();
        assert_eq!(shares, [mbit(1), mbit(1)]);
    }

    #[test]
    fn a_window_of_64_kib_leaves_the_rest_to_others() {
        // 65 536 bytes in 100 ms are 5 242 880 bit/s, in 300 ms 1 747 626.67.
        let windowed = |millis| round_trip(millis).with_window(Bytes(65_536));
        let alone =
            |millis| allocate(SharingModelKind::RttAware, &[mbit(10)], &[(&[0], windowed(millis))]);
        assert_eq!(alone(100).unwrap(), [bits(5_242_880)]);
        assert_eq!(alone(300).unwrap(), [bits(1_747_626)]);
        let both = [(&[0][..], windowed(100)), (&[0][..], round_trip(300))];
        let shares = allocate(SharingModelKind::RttAware, &[mbit(10)], &both).unwrap();
        assert_eq!(shares, [bits(5_242_880), bits(4_757_120)]);
    }
}

/// Figure 3.7: three streams start one after the other, then end; all lanes have 10 Mbit/s.
#[test]
fn the_plateaus_of_figure_3_7_are_exact() {
    // N→R→3N, 3N→R→N, and 3N→R→R→3N: the shared lane is the first, the last, or the one between.
    let one_to_three: [&[u32]; 3] = [&[0, 1], &[0, 2], &[0, 3]];
    let three_to_one: [&[u32]; 3] = [&[0, 3], &[1, 3], &[2, 3]];
    let three_to_three: [&[u32]; 3] = [&[0, 3, 4], &[1, 3, 5], &[2, 3, 6]];
    for paths in [one_to_three, three_to_one, three_to_three] {
        for model in [SharingModelKind::RttAware, SharingModelKind::Equal] {
            let mut shares = MaxMinShares::new(model, &[mbit(10); 7]).unwrap();
            for (id, path) in (1..).zip(paths) {
                shares.start(FlowId(id), path, round_trip(40)).unwrap();
                let each = 10_000_000 / id;
                let expected: Vec<_> = (1..=id).map(|flow| (flow, each)).collect();
                assert_eq!(rates(shares.settle()), expected);
            }
            shares.stop(FlowId(1)).unwrap();
            assert_eq!(rates(shares.settle()), [(2, 5_000_000), (3, 5_000_000)]);
            shares.stop(FlowId(2)).unwrap();
            assert_eq!(rates(shares.settle()), [(3, 10_000_000)]);
        }
    }
}
