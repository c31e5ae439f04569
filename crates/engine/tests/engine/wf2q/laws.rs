//! Laws of WF²Q+ over random classes and loads, with the fluid schedule beside.

use proptest::prelude::*;
use windtunnel_model::Rate;
use windtunnel_model::profile::Wf2qParameters;

use super::fluid::Fluid;
use super::{Link, Out, RATE, class, shared};
use crate::support::US;

/// A packet: after how many µs, of which class, how long.
type Arrival = (u64, usize, usize);

#[derive(Debug, Clone)]
struct Case {
    weights: Vec<u32>,
    /// In thousandths of the link, of all classes together.
    reserved: Vec<u64>,
    load: Vec<Arrival>,
}

fn cases(gap: u64) -> impl Strategy<Value = Case> {
    (2usize..6).prop_flat_map(move |count| {
        let weights = prop::collection::vec(1u32..20, count);
        let reserved = prop::collection::vec(prop_oneof![Just(0), 1u64..180], count);
        let arrival = (0..gap, 0..=count, 60usize..1500);
        let load = prop::collection::vec(arrival, 40..300);
        (weights, reserved, load).prop_map(|(weights, reserved, load)| Case {
            weights,
            reserved,
            load,
        })
    })
}

impl Case {
    fn setting(&self) -> Wf2qParameters {
        let each = self.weights.iter().zip(&self.reserved);
        let classes = each.map(|(weight, min)| class(*min, *weight)).collect();
        Wf2qParameters { classes, ..Wf2qParameters::default() }
    }

    /// Parts of the rate, the rest's among them.
    fn shares(&self) -> Vec<f64> {
        let shares = self.setting().shares(Rate::from_bits_per_second(RATE).unwrap());
        shares.into_iter().map(|share| share as f64 / RATE as f64).collect()
    }

    /// When packets come, in µs, and of which class and length they are.
    fn arrivals(&self) -> impl Iterator<Item = Arrival> {
        self.load.iter().scan(0, |at, (gap, class, len)| {
            *at += gap;
            Some((*at, *class, *len))
        })
    }

    fn play(&self) -> Vec<Out> {
        let mut link = Link::new(shared(self.setting().classes, 100_000));
        for (at, class, len) in self.arrivals() {
            link.send(at * US, u16::try_from(class).unwrap(), 0, len);
        }
        link.net.finish();
        link.net.check_conservation();
        link.out()
    }

    fn fluid(&self) -> Fluid {
        Fluid::new(&self.shares())
    }
}

proptest! {
    #[test]
    fn the_line_is_never_idle_while_something_waits(case in cases(1500)) {
        let out = case.play();
        // What a line serves in all does not depend on the order.
        let (mut free_at, mut served) = (0, Vec::new());
        for (at, _, len) in case.arrivals() {
            free_at = at.max(free_at) + u64::try_from(len).unwrap();
            served.push(free_at);
        }
        prop_assert_eq!(out.len(), case.load.len());
        prop_assert_eq!(out.last().unwrap().at, served.last().unwrap() * US);
        let busy: u64 = out.windows(2).map(|two| two[1].bytes.min((two[1].at - two[0].at) / US)).sum();
        let bytes: u64 = out.iter().skip(1).map(|out| out.bytes).sum();
        prop_assert_eq!(busy, bytes);
    }

    #[test]
    fn no_packet_leaves_later_than_at_a_line_of_its_own_and_one_packet(case in cases(1500)) {
        let shares = case.shares();
        // The class alone at its share of the rate: when each of its packets would have left.
        let mut alone = vec![Vec::new(); shares.len()];
        for (at, class, len) in case.arrivals() {
            let free_at: f64 = alone[class].last().copied().unwrap_or(0.0);
            alone[class].push(free_at.max(at as f64) + len as f64 / shares[class]);
        }
        let longest = case.load.iter().map(|(_, _, len)| *len).max().unwrap() as f64;
        for out in case.play() {
            let bound = alone[out.class][usize::try_from(out.number).unwrap()] + longest;
            let at = out.at as f64 / US as f64;
            prop_assert!(at <= bound + 1.0, "{:?}: {} after its bound", out, at - bound);
        }
    }

    #[test]
    fn while_all_classes_send_each_is_within_a_packet_of_the_fluid_schedule(
        case in cases(1), backlog in 20usize..40
    ) {
        // Everything is there at once, so that a class goes on until it has nothing left; the first
        // that has ends the comparison.
        let mut case = case;
        let classes = case.weights.len() + 1;
        let more = case.load.clone().into_iter().cycle().take(classes * backlog).enumerate();
        case.load.extend(more.map(|(n, (_, _, len))| (0, n % classes, len)));
        let longest = case.load.iter().map(|(_, _, len)| *len).max().unwrap() as f64;
        let mut left = vec![0.0; classes];
        let mut fluid = case.fluid();
        for (_, class, len) in case.arrivals() {
            left[class] += len as f64;
            fluid.arrive(0.0, class, len as f64);
        }
        let mut served = vec![0.0; classes];
        for out in case.play() {
            served[out.class] += out.bytes as f64;
            let ideal = fluid.served_at(out.at as f64 / US as f64).to_vec();
            if ideal.iter().zip(&left).any(|(ideal, left)| ideal + 1.0 >= *left) {
                break;
            }
            for (served, ideal) in served.iter().zip(ideal) {
                prop_assert!((served - ideal).abs() <= longest + 1.0, "{} and {}", served, ideal);
            }
        }
    }

    #[test]
    fn a_class_that_goes_on_sending_has_its_part_of_any_interval_but_for_a_packet_before_and_after(
        case in cases(1500)
    ) {
        let shares = case.shares();
        let out = case.play();
        let longest = |class: Option<usize>| {
            let mine = case.load.iter().filter(|(_, of, _)| class.is_none_or(|class| *of == class));
            mine.map(|(_, _, len)| *len).max().unwrap_or(0) as f64
        };
        for (class, share) in shares.iter().enumerate() {
            // It can have been ahead by the part of a packet that others' shares would have been, and
            // falls behind by as much of another and its part of the longest: it is eligible when it
            // is due, and all that goes before it then is what others are due, and one packet.
            let index = 2.0 * longest(Some(class)) * (1.0 - share) + longest(None) * share;
            for period in backlogged(&case, &out, class) {
                let (mut best, mut behind) = (0.0f64, 0.0);
                for one in period {
                    let mine = if one.class == class { one.bytes as f64 } else { 0.0 };
                    behind += share * one.bytes as f64 - mine;
                    prop_assert!(behind - best <= index + 1.0, "class {}: {} over {}", class, behind - best, index);
                    best = best.min(behind);
                }
            }
        }
    }
}

/// What was transmitted while a class had something that waited: by periods.
fn backlogged<'a>(case: &Case, out: &'a [Out], class: usize) -> Vec<&'a [Out]> {
    let arrivals: Vec<u64> =
        case.arrivals().filter(|(_, of, _)| *of == class).map(|(at, ..)| at * US).collect();
    let (mut periods, mut start, mut gone) = (Vec::new(), None, 0);
    for (index, one) in out.iter().enumerate() {
        // What comes just when a transmission begins has come too late for it.
        let begins = one.at - one.bytes * US;
        let waits = arrivals.iter().filter(|at| **at < begins).count() > gone;
        match (waits, start) {
            (true, None) => start = Some(index),
            (false, Some(from)) => {
                periods.push(&out[from..index]);
                start = None;
            }
            _ => {}
        }
        gone += usize::from(one.class == class);
    }
    periods.extend(start.map(|from| &out[from..]));
    periods
}
