//! Input that no person writes: large, deep, multiplied, or not text at all. Each gets one clear
//! error.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/load.rs"]
mod common;

use std::fmt::Write as _;

use common::load_text;

/// The only mistake's place and message.
fn mistake(text: impl AsRef<[u8]>) -> (u32, u32, String) {
    let errors = load_text("wild", text.as_ref()).unwrap_err();
    assert_eq!(errors.mistakes().len(), 1, "{errors}");
    assert!(errors.to_string().len() < 1000, "the error itself is small");
    let mistake = &errors.mistakes()[0];
    (mistake.line, mistake.column, mistake.message.clone())
}

#[test]
fn a_file_that_is_too_large_is_refused_before_it_is_read() {
    let (line, column, message) = mistake("x".repeat((16 << 20) + 1));
    assert_eq!((line, column, message.as_str()), (1, 1, "the file is larger than 16 MiB"));
}

#[test]
fn ten_megabytes_of_nonsense_are_one_error() {
    let (line, column, message) = mistake("x~%#!@ ".repeat(10_000_000 / 7));
    assert_eq!((line, column), (1, 1));
    assert!(message.starts_with("the file must hold the keys of a scenario"), "{message}");
}

#[test]
fn ten_megabytes_of_bytes_are_one_error() {
    let bytes: Vec<u8> =
        (0..10_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (line, _, _) = mistake(bytes);
    assert_eq!(line, 1);
}

#[test]
fn deep_nesting_is_refused() {
    for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
        let (line, _, message) = mistake(deep);
        assert_eq!(line, 1);
        assert!(message.starts_with("nested "), "{message}");
    }
}

#[test]
fn aliases_cannot_multiply_without_bound() {
    let mut bomb = String::from("a: &a [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10u8 {
        let (before, name) = (char::from(b'a' + level - 1), char::from(b'a' + level));
        let tens = [format!("*{before}").as_str(); 10].join(", ");
        writeln!(bomb, "{name}: &{name} [{tens}]").unwrap();
    }
    let (_, _, message) = mistake(bomb);
    assert_eq!(message, "anchors and aliases repeat more than 4 MB");
}

#[test]
fn merges_cannot_multiply_without_bound() {
    let mut bomb = String::from("x-a: &a {k: [x, x, x, x, x, x, x, x, x, x]}\n");
    for level in 1..10u8 {
        let (before, name) = (char::from(b'a' + level - 1), char::from(b'a' + level));
        let tens: Vec<String> = (0..10).map(|n| format!("k{n}: {{<<: *{before}}}")).collect();
        writeln!(bomb, "x-{name}: &{name} {{{}}}", tens.join(", ")).unwrap();
    }
    let (_, _, message) = mistake(bomb);
    assert_eq!(message, "anchors and aliases repeat more than 4 MB");
    // Merging the same map again and again adds nothing to what it is merged into, and is bounded
    // all the same.
    let same = format!("x-a: &a {{k: 1}}\nx-b: {{<<: [{}]}}\n", "*a,".repeat(500_000));
    let (_, _, message) = mistake(same);
    assert_eq!(message, "anchors and aliases repeat more than 4 MB");
}

#[test]
fn more_values_than_any_plan_needs_are_refused() {
    let (_, _, message) = mistake("a: [".to_owned() + &"b,".repeat(2_500_000) + "]");
    assert_eq!(message, "more than 2000000 values in one file");
}

#[test]
fn a_hundred_thousand_mistakes_are_twenty_and_a_count() {
    let text = format!("nodes: {{a: {{}}}}\nlinks:\n{}", "  - {betwen: [a, b]}\n".repeat(100_000));
    let errors = load_text("wild", text.as_bytes()).unwrap_err();
    assert_eq!((errors.mistakes().len(), errors.more()), (20, 99_980));
    assert!(errors.to_string().ends_with("and 99980 more"));
}

#[test]
fn groups_cannot_multiply_without_bound() {
    let members = "nodes: {a: {count: 5000, run: [\"";
    let text = format!("{members}{}\"]}}}}\n", "x".repeat(1 << 20));
    let (_, _, message) = mistake(text);
    assert_eq!(message, "here the file's groups expand to more than 4000000 things");
}

/// The counts are exact, and of more events than any memory holds: none of them was made.
#[test]
fn repetitions_are_counted_before_they_are_worked_out() {
    let head = "duration: 24h\nnodes: {a: {run: x, count: 4}, b: {}}\n\
                links: [{between: [a, b], name: l}]\nevents:\n";
    let cases = [
        ("{at: 0s, link: l, set: {loss: 1%}, every: 1us}", "86400000000"),
        ("{at: 1h, node: a, do: restart, every: 1us, for: 10s}", "10000000"),
        ("{at: 0s, heal: true, every: 1s, times: 600000}", "600000"),
        ("{at: 0s, flap: {link: l, every: 2us, down: 1us}}", "86400000000"),
        ("{churn: {nodes: a, rate: 50%, every: 4us, away: 1us}}", "43200000000"),
    ];
    for (event, count) in cases {
        // Where the value of `every` stands, after "  - ".
        let column = 5 + u32::try_from(event.find("every: ").unwrap() + "every: ".len()).unwrap();
        let found = mistake(format!("{head}  - {event}\n"));
        let message = format!("this comes to {count} events, more than the 500000 of a file");
        assert_eq!(found, (5, column, message), "{event}");
    }
}

#[test]
fn repetitions_share_one_bound() {
    let text = "duration: 100s\nnodes: {a: {run: x}, b: {}}\nlinks: [{between: [a, b]}]\n\
                events:\n  - {at: 0s, reroute: true, every: 250us}\n  \
                - {at: 0s, heal: true, every: 250us, times: 100001}\n";
    let (line, _, message) = mistake(text);
    let whole = "this comes to 100001 events, with those before it, more than the 500000 of a file";
    assert_eq!((line, message.as_str()), (6, whole));
}

#[test]
fn expectations_of_groups_cannot_multiply_without_bound() {
    let mut text = String::from("nodes: {a: {count: 9999, run: x}, b: {}}\nrouters: [r]\n");
    text.push_str("links: [{between: [a, r]}, {between: [b, r]}]\nexpect:\n");
    text.push_str(&"  - {node: a, exit: 0}\n".repeat(60));
    let (_, _, message) = mistake(text);
    assert_eq!(message, "here the file's groups expand to more than 4000000 things");
}

#[test]
fn after_cannot_multiply_without_bound() {
    let text = "nodes:\n  a: {count: 5000, run: x}\n  b: {count: 5000, run: x, after: a}\n  \
                c: {count: 10000}\n";
    let (line, _, message) = mistake(text);
    assert_eq!((line, message.as_str()), (4, "here the nodes become more than 10000"));
}

#[test]
fn links_are_bounded() {
    let mut text = String::from("nodes: {a: {count: 10000}}\nrouters: [r]\nlinks:\n");
    text.push_str(&"  - {between: [a, r]}\n".repeat(6));
    let (line, _, message) = mistake(text);
    assert_eq!((line, message.as_str()), (9, "here the links become more than 50000"));
}

#[test]
fn a_pattern_that_needs_much_memory_is_refused() {
    let (line, column, message) =
        mistake("nodes: {a: {run: x, ready: \"log:(\\\\w{100}){100}{100}\"}}\n");
    assert_eq!((line, column), (1, 28));
    assert!(message.contains("size limit"), "{message}");
}

#[test]
fn the_largest_network_is_resolved() {
    let mut text = String::from("nodes: {a: {count: 9999, run: x}, b: {}}\nrouters: [r]\nlinks:\n");
    text.push_str("  - {between: [a, r], rate: 1mbit}\n  - {between: [b, r]}\n");
    let loaded = load_text("large", text.as_bytes()).unwrap();
    assert_eq!((loaded.plan.nodes.len(), loaded.plan.links.len()), (10_000, 10_000));
    assert_eq!(loaded.plan.nodes[9_998].name, "a-9999");
    assert_eq!(loaded.plan.nodes[9_998].interfaces[0].v4.unwrap().to_string(), "10.0.39.15");
}

#[test]
fn a_chain_of_ten_thousand_afters_needs_no_deep_stack() {
    let mut text = String::from("allow-unreachable: true\nnodes:\n  n0: {run: x, after: n9999}\n");
    for n in 1..10_000 {
        writeln!(text, "  n{n}: {{run: x, after: n{}}}", n - 1).unwrap();
    }
    let (_, _, message) = mistake(text);
    assert!(message.starts_with("a cycle in `after`: `n0` after `n9999`"), "{message}");
    assert!(message.ends_with(" after …"), "{message}");
}
