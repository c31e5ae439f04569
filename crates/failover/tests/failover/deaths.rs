//! A replica dies at every packet of a connection.

use windtunnel_model::Span;

use crate::basics::{PROGRAMS, finish};
use crate::programs::Program;
use crate::world::{Death, How, Scenario};

/// Runs deaths of one replica at each packet of a connection.
fn die_at_each_packet(scenario: &Scenario, replica: usize, how: How, notice: Option<Span>) {
    for packet in 1..=finish(scenario.clone()).packets {
        let mut scenario = scenario.clone();
        scenario.deaths = vec![Death { packet, replica, how, notice }];
        if std::panic::catch_unwind(|| finish(scenario)).is_err() {
            panic!("death of {replica} at packet {packet}, {how:?}, notice {notice:?}");
        }
    }
}

fn scenario(program: Program, replicas: usize) -> Scenario {
    let mut scenario = Scenario::new(program, replicas);
    scenario.client.room = 20_000;
    scenario
}

const NOTICES: [Option<Span>; 2] = [None, Some(Span::from_millis(5))];

#[test]
fn a_connection_survives_a_host_that_is_cut_off_at_any_packet() {
    for program in PROGRAMS {
        for replica in 0..2 {
            for notice in NOTICES {
                die_at_each_packet(&scenario(program, 2), replica, How::Cut, notice);
            }
        }
    }
}

#[test]
fn a_connection_survives_a_program_that_is_killed_at_any_packet() {
    for program in PROGRAMS {
        for replica in 0..2 {
            for notice in NOTICES {
                die_at_each_packet(&scenario(program, 2), replica, How::Killed, notice);
            }
        }
    }
}

#[test]
fn a_connection_survives_a_death_beside_a_slow_backup() {
    for program in PROGRAMS {
        for how in [How::Cut, How::Killed] {
            let mut scenario = scenario(program, 2);
            scenario.think[1] = Span::from_millis(30);
            scenario.legs[1].delay = Span::from_millis(12);
            die_at_each_packet(&scenario, 0, how, None);
        }
    }
}

#[test]
fn a_connection_of_three_survives_two_deaths() {
    for program in PROGRAMS {
        let scenario = scenario(program, 3);
        let packets = finish(scenario.clone()).packets;
        for first in (1..=packets).step_by(5) {
            for second in (first..=first + packets / 2).step_by(7) {
                for (one, two) in [(How::Cut, How::Killed), (How::Killed, How::Cut)] {
                    let mut scenario = scenario.clone();
                    let death = |packet, replica, how| Death { packet, replica, how, notice: None };
                    scenario.deaths = vec![death(first, 0, one), death(second, 1, two)];
                    if std::panic::catch_unwind(|| finish(scenario)).is_err() {
                        panic!("{program:?}: deaths at {first}, {one:?}, and {second}, {two:?}");
                    }
                }
            }
        }
    }
}
