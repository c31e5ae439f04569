//! Laws over random histories: with known truth, and damaged.

use proptest::prelude::*;

use super::wire::{LANES, Wire, ack, data};
use crate::explain::part::LatencyComponent;
use crate::explain::{Explanation, explain};
use crate::history::EndpointRole::{self, Client, Server};
use crate::history::{FlowHistory, TcpSample};

/// One request and its answer, by what takes time.
#[derive(Debug, Clone)]
struct Script {
    asked: u32,
    answered: u32,
    client_stack: u64,
    server_stack: u64,
    client_wakes: u64,
    server_reads_after: u64,
    server_thinks: u64,
    client_thinks: u64,
    /// Retransmissions of the request's packet, and after how long each.
    lost: Vec<(u32, u64)>,
    /// Until when other traffic has the last lane, from when the answer comes to it.
    queued: u64,
}

fn script() -> impl Strategy<Value = Script> {
    let stack = 1..100_000_u64;
    let long = 0..2_000_000_000_u64;
    let lost = proptest::collection::vec((0..2_u32, 1_000_000..900_000_000_u64), 0..3);
    (
        1..1448_u32,
        1..1448_u32,
        [stack.clone(), stack.clone(), stack],
        [long.clone(), long.clone()],
        lost,
        long,
    )
        .prop_map(|(asked, answered, [a, b, c], [reads, thinks], lost, queued)| Script {
            asked,
            answered,
            client_stack: a,
            server_stack: b,
            client_wakes: c,
            server_reads_after: reads,
            server_thinks: thinks,
            client_thinks: queued / 7,
            lost,
            queued,
        })
}

/// What was meant to take time, in the order of [`truth_of`].
type Truth = [u64; 7];

fn play(scripts: &[Script]) -> (FlowHistory, Vec<Truth>) {
    let mut wire = Wire::new([(3, 1_000_000), (8, 10_000_000), (8, 10_000_000), (3, 1_000_000)]);
    let (mut now, mut asked, mut answered) = (1_000_000, 0, 0);
    let mut truths = Vec::new();
    for script in scripts {
        now += script.client_thinks;
        let request = (asked, asked + u64::from(script.asked));
        let answer = (answered, answered + u64::from(script.answered));
        wire.write(Client, (now, now + script.client_stack / 2), request);
        let mut sent = now + script.client_stack;
        for (lane, after) in &script.lost {
            wire.send(Client, sent, data(asked, script.asked).dropped_on(*lane));
            sent += after;
        }
        let arrived = wire.send(Client, sent, data(asked, script.asked)).unwrap();
        let read = arrived + script.server_reads_after;
        wire.read(Server, (read, read), request);
        let written = read + script.server_thinks;
        wire.write(Server, (written, written), answer);
        let sent = written + script.server_stack;
        wire.lane_is_free_at(3, sent + script.queued);
        let came = wire.send(Server, sent, data(answered, script.answered)).unwrap();
        let queued = script.queued.saturating_sub(10_000_000 + 8 * u64::from(script.answered));
        now = came + script.client_wakes;
        wire.read(Client, (came, now), answer);
        truths.push([
            script.client_stack + script.client_wakes,
            script.server_stack,
            script.server_reads_after,
            script.server_thinks,
            script.lost.iter().map(|(_, after)| after).sum(),
            queued,
            11 * (u64::from(script.asked) + u64::from(script.answered)),
        ]);
        (asked, answered) = (request.1, answer.1);
    }
    (wire.history(), truths)
}

fn truth_of(explained: &Explanation) -> Truth {
    let parts = explained.parts();
    let sum = |wanted: &dyn Fn(LatencyComponent) -> bool| {
        parts.iter().filter(|(part, _)| wanted(**part)).map(|(_, ns)| ns).sum()
    };
    [
        sum(&|part| part == LatencyComponent::Kernel(Client)),
        sum(&|part| part == LatencyComponent::Kernel(Server)),
        sum(&|part| part == LatencyComponent::Unread(Server)),
        sum(&|part| part == LatencyComponent::Thinking(Server)),
        sum(&|part| matches!(part, LatencyComponent::Recovery(_))),
        sum(&|part| part == LatencyComponent::Queue(3)),
        sum(&|part| matches!(part, LatencyComponent::Transmission(_))),
    ]
}

fn assert_complete(explained: &Explanation) {
    let mut time = explained.begin;
    for stretch in &explained.stretches {
        assert_eq!(stretch.from, time, "{explained:?}");
        assert!(stretch.to > stretch.from, "{explained:?}");
        time = stretch.to;
    }
    assert_eq!(time, explained.end, "{explained:?}");
}

/// A download with a window, losses and acknowledgements: nothing of it is known exactly but its
/// whole.
fn download(window: u64, lost: &[u64], samples: bool) -> FlowHistory {
    let mut wire = Wire::new([(1, 1_000_000), (1, 9_000_000), (80, 9_000_000), (1, 1_000_000)]);
    wire.write(Client, (1, 2), (0, 100));
    let arrived = wire.send(Client, 2, data(0, 100)).unwrap();
    wire.read(Server, (1, arrived), (0, 100));
    wire.write(Server, (arrived, arrived + 10), (0, 60_000));
    let (mut time, mut offset, mut came) = (arrived, 0, 0);
    while offset < 60_000 {
        for at in offset..(offset + window).min(60) {
            if lost.contains(&at) {
                wire.send(Server, time, data(at * 1000, 1000).dropped_on(3));
            } else {
                came = wire.send(Server, time, data(at * 1000, 1000)).unwrap();
                wire.send(Client, came, ack(offset * 1000));
            }
        }
        let again = came.max(time) + 1_000_000;
        for at in (offset..(offset + window).min(60)).filter(|at| lost.contains(at)) {
            came = wire.send(Server, again, data(at * 1000, 1000)).unwrap();
        }
        offset += window;
        time = wire.send(Client, came, ack(offset.min(60) * 1000)).unwrap();
        if offset >= 60 {
            break;
        }
    }
    wire.read(Client, (2, came + 5), (0, 60_000));
    if samples {
        let sample = TcpSample { time: 1, cwnd: 8, segment: 1000, ..TcpSample::default() };
        wire.history.samples[1] = vec![TcpSample { send_window: 30_000, ..sample }];
    }
    wire.history()
}

proptest! {
    #[test]
    fn parts_add_up_to_the_measured_time_and_are_what_took_the_time(
        scripts in proptest::collection::vec(script(), 1..6),
    ) {
        let (history, truths) = play(&scripts);
        let explained = explain(&history, &LANES).unwrap().requests;
        prop_assert_eq!(explained.len(), truths.len());
        for (explained, truth) in explained.iter().zip(truths) {
            assert_complete(explained);
            prop_assert_eq!(truth_of(explained), truth);
        }
    }

    #[test]
    fn a_download_adds_up_whatever_its_window_and_losses(
        window in 1..30_u64,
        lost in proptest::collection::vec(0..60_u64, 0..10),
        samples: bool,
    ) {
        let explained = explain(&download(window, &lost, samples), &LANES).unwrap().requests;
        prop_assert_eq!(explained.len(), 1);
        assert_complete(&explained[0]);
    }

    /// Records that are missing may take parts away, never time.
    #[test]
    fn a_damaged_history_still_adds_up(
        scripts in proptest::collection::vec(script(), 1..5),
        missing in proptest::collection::vec(any::<prop::sample::Index>(), 0..40),
        shuffled: bool,
    ) {
        let (mut history, _) = play(&scripts);
        for (number, index) in missing.iter().enumerate() {
            let side = EndpointRole::BOTH[number % 2].index();
            if number % 4 == 3 && !history.calls[side].is_empty() {
                let at = index.index(history.calls[side].len());
                history.calls[side].remove(at);
            } else if !history.packets[side].is_empty() {
                let at = index.index(history.packets[side].len());
                history.packets[side].remove(at);
            }
        }
        if shuffled {
            // A machine whose clock is wrong by 5 ms.
            history.packets[1].iter_mut().for_each(|packet| packet.time += 5_000_000);
        }
        for explained in explain(&history, &LANES).unwrap().requests {
            assert_complete(&explained);
        }
    }
}
