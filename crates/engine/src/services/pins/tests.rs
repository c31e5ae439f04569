use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn key(client: u32) -> PinnedFlowKey {
    PinnedFlowKey { client: u128::from(client), client_port: 4000, row: 3, router: None }
}

fn pin(client: u32, replica: u16) -> ReplicaPin {
    ReplicaPin::new(key(client), replica, PinnedFlowPhase::Open, CoarseTime(0))
}

#[test]
fn a_pin_has_40_bytes_and_48_with_its_places_in_the_index() {
    assert_eq!(size_of::<ReplicaPin>(), 40);
    let mut pins = ReplicaPinTable::new(CAPACITY_MAX);
    pins.insert(pin(1, 0)).unwrap();
    assert_eq!(pins.index.len() * size_of::<u32>(), CAPACITY_MAX * 8);
}

#[test]
fn a_pin_gives_its_key_back() {
    let client = 0xfd00_0001_0002_0003_0004_0005_0006_0007;
    for router in [None, Some(RouterId(0)), Some(RouterId(1 << 20))] {
        let key = PinnedFlowKey { client, client_port: 9, row: 65_000, router };
        assert_eq!(ReplicaPin::new(key, 7, PinnedFlowPhase::Flow, CoarseTime(5)).key(), key);
    }
}

#[test]
fn a_full_table_takes_no_more_until_one_is_evicted() {
    let mut pins = ReplicaPinTable::new(4);
    for client in 0..4 {
        pins.insert(ReplicaPin { seen: CoarseTime(client), ..pin(client, 0) }).unwrap();
    }
    assert_eq!(pins.insert(pin(9, 0)), None);
    let victim = pins.victim(CoarseTime(10), |_| false).unwrap();
    assert_eq!(pins.get(victim).key(), key(0), "silent for longest");
    pins.remove(victim);
    assert!(pins.insert(pin(9, 1)).is_some());
    assert_eq!((pins.len(), pins.find(&key(0))), (4, None));
}

#[test]
fn what_is_over_goes_before_what_closes_and_that_before_the_silent() {
    let mut pins = ReplicaPinTable::new(3);
    let silent = pins.insert(ReplicaPin { seen: CoarseTime(0), ..pin(0, 0) }).unwrap();
    let closing = ReplicaPin { seen: CoarseTime(5), state: PinnedFlowPhase::Closing, ..pin(1, 0) };
    let closing = pins.insert(closing).unwrap();
    let over = pins.insert(ReplicaPin { seen: CoarseTime(9), ..pin(2, 9) }).unwrap();
    let mut victims = Vec::new();
    for _ in 0..3 {
        let victim = pins.victim(CoarseTime(10), |pin| pin.replica == 9).unwrap();
        victims.push(victim);
        pins.remove(victim);
    }
    assert_eq!(victims, [over, closing, silent]);
}

#[test]
fn ages_are_right_when_ticks_wrap() {
    let before = CoarseTime(u32::MAX - 5);
    let after = CoarseTime(10);
    assert_eq!(after.since(before), CoarseDuration(16));
    assert_eq!(
        CoarseDuration::of(Span::from_secs(60)),
        CoarseDuration(57_221),
        "60 s in 2^20 ns, rounded up"
    );
}

#[test]
fn a_million_pins_are_found_and_taken_away() {
    let mut pins = ReplicaPinTable::new(CAPACITY_MAX);
    let count = 1_000_000;
    for client in 0..count {
        let replica = u16::try_from(client % 1000).unwrap();
        assert!(pins.insert(pin(client, replica)).is_some());
    }
    for client in (0..count).step_by(997) {
        let number = pins.find(&key(client)).unwrap();
        assert_eq!(u32::from(pins.get(number).replica), client % 1000);
        pins.remove(number);
        assert_eq!(pins.find(&key(client)), None);
    }
    assert_eq!(pins.find(&key(count)), None);
}

proptest! {
    /// The table does what a map does, whatever is put in and taken away, also where many homes
    /// are the same.
    #[test]
    fn the_table_is_a_map(steps in proptest::collection::vec((0..40u32, any::<bool>()), 0..400)) {
        let mut pins = ReplicaPinTable::new(32);
        let mut model: BTreeMap<u32, u16> = BTreeMap::new();
        for (turn, (client, adds)) in (0u16..).zip(steps) {
            match (pins.find(&key(client)), adds) {
                (None, true) => {
                    let added = pins.insert(pin(client, turn)).is_some();
                    prop_assert_eq!(added, model.len() < 32);
                    if added {
                        model.insert(client, turn);
                    }
                }
                (Some(number), false) => {
                    pins.remove(number);
                    model.remove(&client);
                }
                _ => {}
            }
            prop_assert_eq!(pins.len(), model.len());
            for client in 0..40 {
                let found = pins.find(&key(client)).map(|number| pins.get(number).replica);
                prop_assert_eq!(found, model.get(&client).copied());
            }
        }
    }
}
