//! The queues that nobody asked for: stated, because results depend on them.

use std::collections::BTreeMap;

/// A line for each length of default queues with the link directions that have it.
pub(crate) fn line(lengths: BTreeMap<&str, Vec<String>>) -> String {
    let mut text = String::new();
    let more = lengths.len().saturating_sub(LENGTHS_MAX);
    for (length, lanes) in lengths.into_iter().take(LENGTHS_MAX) {
        let named = lanes.iter().take(LANES_MAX).cloned().collect::<Vec<_>>().join(", ");
        let others = match lanes.len().saturating_sub(LANES_MAX) {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        text.push_str(&format!(
            "default queue {length} (the larger of 100 packets and 50 ms of the rate): {named}{others}\n"
        ));
    }
    if more > 0 {
        text.push_str(&format!("… and default queues of {more} more lengths: see --json\n"));
    }
    text
}

const LENGTHS_MAX: usize = 8;
const LANES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_links_of_one_length_are_counted() {
        let lanes: Vec<String> = (1..=7).map(|n| format!("l{n} a-b")).collect();
        assert_eq!(
            line(BTreeMap::from([("100p", lanes)])),
            "default queue 100p (the larger of 100 packets and 50 ms of the rate): \
             l1 a-b, l2 a-b, l3 a-b, l4 a-b and 3 more\n"
        );
    }
}
