//! What Linux 6.18 answers about rules that `nft` made, and answers that no kernel gives.

use super::*;

/// Its tables, chains and rules:
///
/// ```text
/// table ip t {
///     map m { type ipv4_addr : verdict; }
///     chain n { counter packets 0 bytes 0 return; }
///     chain c { type filter hook input priority filter; policy drop;
///         numgen random mod 10 0 counter packets 11 bytes 980 drop
///         counter packets 57 bytes 5068 limit rate 10/second reject
///         drop
///         ip saddr vmap @m
///         accept; }
///     chain o { type filter hook output priority filter; policy accept;
///         tcp option maxseg size set 1000
///         ip dscp set cs1
///         jump n; }
///     chain p { type nat hook postrouting priority srcnat; policy accept; masquerade; }
/// }
/// table inet u { flags dormant;
///     chain d { type filter hook forward priority filter; policy accept;
///         meta l4proto udp counter packets 0 bytes 0 quota over 1 mbytes drop; }
/// }
/// ```
pub(crate) const ANSWER: &[u8] = include_bytes!("../../../corpus/nf-tables");

#[test]
fn each_chain_says_what_it_does_and_what_it_has_counted() {
    let mut described = read_answer(ANSWER).describe();
    let expected = [
        "ip table t, chain c (input): policy drop (not counted), drop by 2 rules (11 packets, 1 rule \
         without a counter), reject + rate limit (at most 57 packets), what a map says (not counted)",
        "ip table t, chain o (output): change packets by 2 rules (not counted)",
        "ip table t, chain p (postrouting): NAT (not counted)",
        "inet table u, asleep, chain d (forward): drop + quota (at most 0 packets)",
    ];
    described.sort();
    let mut expected = expected.map(str::to_owned).to_vec();
    expected.sort();
    assert_eq!(described, expected);
}

#[test]
fn an_answer_that_is_cut_off_or_spoilt_anywhere_is_no_panic() {
    for length in 0..ANSWER.len() {
        let _ = read_answer(&ANSWER[..length]).describe();
    }
    for at in 0..ANSWER.len() {
        for value in [0, 1, 4, 0x7f, 0xff, ANSWER[at] ^ 0x10] {
            let mut spoilt = ANSWER.to_vec();
            spoilt[at] = value;
            let _ = read_answer(&spoilt).describe();
        }
    }
}

#[test]
fn a_namespace_without_rules_says_nothing_and_one_that_had_some_says_so() {
    assert_eq!(Ruleset::default().describe(), [""; 0]);
    let changed = Ruleset { has_changed: true, ..Ruleset::default() };
    assert_eq!(changed.describe(), ["rules of nftables, removed before the end"]);
}

#[test]
fn no_more_chains_are_kept_than_there_is_room_for() {
    let mut found = Ruleset::default();
    for number in 0..=CHAINS_MAX {
        found.chain(2, "t".into(), format!("c{number}"), None);
    }
    assert_eq!((found.chains.len(), found.untold), (CHAINS_MAX, 1));
    assert!(found.chain(2, "t".into(), "c0".into(), None).is_some());
}
