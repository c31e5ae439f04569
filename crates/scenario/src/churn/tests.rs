//! Populations worked out by hand.

use std::collections::BTreeSet;

use windtunnel_model::Span;
use windtunnel_model::random::{RandomSequence, RandomStream};

use super::script::ChurnScriptOutcome;
use super::{ChurnRate, ChurnScript, ChurnTrace, PopulationChange, Speed, by_rate};

fn draws() -> RandomSequence {
    RandomSequence::new(RandomStream::named(7, &["test"]))
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn play(script: &str, members: usize) -> ChurnScriptOutcome {
    let script = ChurnScript::parse(script).unwrap_or_else(|error| panic!("{error:?}"));
    script.moves(members, &BTreeSet::new(), draws(), 100_000).unwrap()
}

/// The members that are there after all moves at `at` or before; panics if one leaves that is not
/// there, or joins that is.
fn inside(moves: &[PopulationChange], at: Span, mut inside: BTreeSet<usize>) -> BTreeSet<usize> {
    for step in moves.iter().filter(|step| step.at <= at) {
        for member in &step.leave {
            assert!(inside.remove(member), "{member} leaves at {} and is not there", step.at);
        }
        for member in &step.join {
            assert!(inside.insert(*member), "{member} joins at {} and is there", step.at);
        }
    }
    inside
}

fn population(moves: &[PopulationChange], at: u64) -> usize {
    inside(moves, secs(at), BTreeSet::new()).len()
}

fn leavers(moves: &[PopulationChange], from: u64, to: u64) -> usize {
    let within = moves.iter().filter(|step| step.at > secs(from) && step.at <= secs(to));
    within.map(|step| step.leave.len()).sum()
}

fn refused(script: &str, members: usize) -> (usize, usize, String) {
    let played = ChurnScript::parse(script)
        .and_then(|script| script.moves(members, &BTreeSet::new(), draws(), 100_000));
    let error = played.unwrap_err();
    (error.line, error.column, error.message)
}

/// The shape of the example in SPLAY's paper: a burst, a slope, steady churn, a crash, a stop.
const SHAPES: &str = "\
at 30s join 10          # all at once
from 5m to 10m inc 10   // one each 30s
from 10m to 15m const churn 50%
at 15m leave 50%
from 15m to 20m inc 10 churn 150%
at 20m stop
";

#[test]
fn the_population_follows_a_script_exactly() {
    let ChurnScriptOutcome { moves, prevented } = play(SHAPES, 40);
    assert!(prevented.is_empty());
    // 30 s: +10. From 300 s: one each 30 s, the tenth at 600 s.
    for (at, expected) in [
        (29, 0),
        (30, 10),
        (299, 10),
        (329, 10),
        (330, 11),
        (449, 14),
        (450, 15),
        (599, 19),
        (600, 20),
    ] {
        assert_eq!(population(&moves, at), expected, "at {at}s");
    }
    // 600 to 900 s: 10 of 20 replaced, at 615, 645 … 885 s.
    for at in [615, 644, 700, 885, 899] {
        assert_eq!(population(&moves, at), 20, "at {at}s");
    }
    assert_eq!(leavers(&moves, 600, 899), 10);
    assert_eq!(leavers(&moves, 614, 615), 1);
    // 900 s: half of 20 leave, then 10 join in 30 s steps, and 15 of 10 are replaced.
    assert_eq!((population(&moves, 900), population(&moves, 930)), (10, 11));
    assert_eq!(leavers(&moves, 900, 1199), 15);
    assert_eq!(population(&moves, 1199), 19);
    assert_eq!(population(&moves, 1200), 0);
}

#[test]
fn the_same_seed_gives_the_same_moves_and_another_seed_others() {
    assert_eq!(play(SHAPES, 40), play(SHAPES, 40));
    let other = RandomSequence::new(RandomStream::named(8, &["test"]));
    let script = ChurnScript::parse(SHAPES).unwrap();
    let other = script.moves(40, &BTreeSet::new(), other, 100_000).unwrap();
    assert_ne!(play(SHAPES, 40), other);
    let sizes =
        |outcome: &ChurnScriptOutcome| (0..1300).map(|at| population(&outcome.moves, at)).collect();
    let (one, two): (Vec<usize>, Vec<usize>) = (sizes(&play(SHAPES, 40)), sizes(&other));
    assert_eq!(one, two, "which members move is random, how many is not");
}

#[test]
fn periods_that_overlap_add_up() {
    // +10 over 0 to 100 s (each 10 s) and −3 over 50 to 80 s (at 60, 70, 80 s).
    let ChurnScriptOutcome { moves, .. } =
        play("from 0s to 100s join 10\nfrom 50s to 80s leave 3\n", 10);
    for (at, expected) in [(50, 5), (60, 5), (70, 5), (80, 5), (90, 6), (100, 7)] {
        assert_eq!(population(&moves, at), expected, "at {at}s");
    }
}

#[test]
fn churn_per_time_is_a_share_of_the_population_at_each_times_beginning() {
    // 10 nodes, 20% per minute for 2.5 minutes: 2, 2, and half of 2.
    let script = "at 0s join 10\nfrom 0s to 2m,30s keep churn 20% per 1m\n";
    let ChurnScriptOutcome { moves, .. } = play(script, 12);
    assert_eq!(leavers(&moves, 0, 60), 2);
    assert_eq!(leavers(&moves, 60, 120), 2);
    assert_eq!(leavers(&moves, 120, 150), 1);
    assert_eq!(population(&moves, 150), 10);
    // At 15 and 45 s of each minute.
    assert_eq!((leavers(&moves, 0, 14), leavers(&moves, 14, 15)), (0, 1));
    assert_eq!((leavers(&moves, 15, 44), leavers(&moves, 44, 45)), (0, 1));
}

#[test]
fn a_replaced_node_starts_afresh_if_no_other_is_outside() {
    let ChurnScriptOutcome { moves, .. } =
        play("at 0s join 4\nfrom 10s to 20s keep churn 50%\n", 4);
    let swaps: Vec<&PopulationChange> =
        moves.iter().filter(|step| !step.leave.is_empty()).collect();
    assert_eq!(swaps.len(), 2);
    assert!(swaps.iter().all(|step| step.leave == step.join));
}

#[test]
fn a_replacement_ratio_below_all_lets_the_population_shrink() {
    // 8 leave, every second is replaced: 10 − 8 + 4.
    let script = "set replacement ratio to 50%\nat 0s join 10\nfrom 0s to 80s keep churn 80%\n";
    let ChurnScriptOutcome { moves, .. } = play(script, 20);
    assert_eq!(leavers(&moves, 0, 80), 8);
    assert_eq!(population(&moves, 80), 6);
}

#[test]
fn no_node_joins_beyond_the_maximum_population_and_a_notice_says_so() {
    let ChurnScriptOutcome { moves, prevented } =
        play("set maximum population to 40%\nat 1s join 3\nat 2s join 4\n", 10);
    assert_eq!((population(&moves, 1), population(&moves, 2)), (3, 4));
    assert_eq!(prevented.into_iter().collect::<Vec<_>>(), [(3, 3)]);
}

#[test]
fn shares_are_of_the_population_and_rounded_to_the_nearest() {
    let ChurnScriptOutcome { moves, .. } =
        play("at 1s join 5\nat 2s leave 50%\nat 3s add 10%\nat 4s add 50%\n", 9);
    // Half of 5 is 3 (halves up), a tenth of 2 is none, half of 2 is one.
    let sizes: Vec<usize> = (1..=4).map(|at| population(&moves, at)).collect();
    assert_eq!(sizes, [5, 2, 2, 3]);
}

#[test]
fn times_add_up_in_every_spelling() {
    for time in
        ["2h30m10s", "2h,30m and 10s", "2 hours, 30 min, and 10 seconds", "9010s", "150.5m -"]
    {
        let text = time.trim_end_matches(" -");
        let ChurnScriptOutcome { moves, .. } = play(&format!("AT {text} Join 1"), 1);
        let expected = if text == time { 9010 } else { 9030 };
        assert_eq!(moves[0].at, secs(expected), "{text}");
    }
}

#[test]
fn mistakes_in_a_script_have_a_line_and_a_column() {
    for (script, line, column, message) in [
        ("at 30 join 10", 1, 7, "here a unit of time: s, m, h or d is needed, not `join`"),
        (
            "\n  at 30s jion 10",
            2,
            10,
            "here `join`, `leave`, `keep`, `set` or `stop` is needed, not `jion`",
        ),
        (
            "at 30s join",
            1,
            12,
            "here a number of nodes such as 10, or a share such as 20% is missing",
        ),
        ("from 10m to 5m join 3", 1, 13, "the period ends at 5min, not after it begins at 10min"),
        ("at 5s leave 3", 1, 7, "3 are to leave at 5s, but only 0 are there"),
        ("at 5s join 9", 1, 7, "9 nodes: there are only 4"),
        ("at 5s join 3\nat 6s join 2", 2, 7, "at 6s no node is left to join: all 4 are there"),
        ("at 5s join 3 churn 5%", 1, 14, "`churn` needs a period, and `join`, `leave` or `keep`"),
        ("at 5s stop\nat 6s join 1", 2, 7, "this goes on after the `stop` of line 1"),
        ("at 5s join 3 nodes", 1, 14, "`nodes` is too much: the statement ends here"),
        ("# nothing\n", 1, 1, "the script has no statement"),
        ("at 1s set replacement ratio to 120%", 1, 32, "here a share from 0% to 100% is needed"),
    ] {
        let expected = (line, column, message.to_owned());
        assert_eq!(refused(script, 4), expected, "{script}");
    }
}

#[test]
fn a_rate_takes_so_many_in_each_period_and_brings_them_back() {
    // 20% of 10 each 60 s: two, at 15 and 45 s of each period, away for 30 s.
    let rate =
        ChurnRate { leavers: 2, every: secs(60), away: secs(30), end: None, periods: Some(2) };
    let moves = by_rate(10, &BTreeSet::new(), &rate, draws(), 1000).unwrap();
    let all: BTreeSet<usize> = (0..10).collect();
    for (at, expected) in
        [(14, 10), (15, 9), (44, 9), (45, 9), (74, 9), (75, 9), (104, 9), (105, 9), (135, 10)]
    {
        assert_eq!(inside(&moves, secs(at), all.clone()).len(), expected, "at {at}s");
    }
    assert_eq!((leavers(&moves, 0, 60), leavers(&moves, 60, 120)), (2, 2));
    let joins: usize = moves.iter().map(|step| step.join.len()).sum();
    assert_eq!(joins, 4);
}

#[test]
fn a_rate_that_leaves_no_node_is_refused() {
    let rate =
        ChurnRate { leavers: 2, every: secs(10), away: secs(60), end: None, periods: Some(9) };
    assert_eq!(by_rate(2, &BTreeSet::new(), &rate, draws(), 1000), None);
}

#[test]
fn the_population_follows_a_trace_exactly() {
    let trace = ChurnTrace::parse("0 10 20\n# a comment\n5.5, 15\n\n7\n").unwrap();
    let moves = trace.moves(Speed::default());
    let there = |at| inside(&moves, Span::from_millis(at), BTreeSet::new());
    assert_eq!(there(0), [0].into());
    assert_eq!(there(5_499), [0].into());
    assert_eq!(there(5_500), [0, 1].into());
    assert_eq!(there(7_000), [0, 1, 2].into());
    assert_eq!(there(10_000), [1, 2].into());
    assert_eq!(there(15_000), [2].into());
    assert_eq!(there(20_000), [0, 2].into());
    let fast = trace.moves(Speed::parse("2.5").unwrap());
    let times: Vec<u64> = fast.iter().map(|step| step.at.as_nanos() / 1_000_000).collect();
    assert_eq!(times, [0, 2200, 2800, 4000, 6000, 8000]);
}

#[test]
fn mistakes_in_a_trace_have_a_line_and_a_column() {
    let error = ChurnTrace::parse("1 2\n3  x\n").unwrap_err();
    assert_eq!((error.line, error.column), (2, 4));
    assert_eq!(error.message, "`x` is not a number of seconds, such as 30 or 2.5");
    let error = ChurnTrace::parse("30 30").unwrap_err();
    assert_eq!((error.line, error.column), (1, 4));
    assert!(ChurnTrace::parse("\n#\n").is_err());
}
