//! Weighted fair queueing: which classes share a link, and what each of them has of it.

use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::demand::Demand;
use crate::discipline::FlowQueues;
use crate::rate::Rate;

/// Parameters of hierarchical weighted fair queueing (WF²Q+; Bennett and Zhang 1997): classes share
/// the link, and flows share their class alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Wf2qParameters {
    /// Number of queues that the flows of each class are hashed to; default 1024, at most
    /// [`FlowQueues::MOST_FLOWS`].
    pub flows: u32,
    /// The classes, at most [`Wf2qParameters::MOST_CLASSES`]. One more, with weight 1 and no minimum, has what
    /// belongs to none of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<SendShare>,
}

/// What a class has of the link that it shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct SendShare {
    /// As reports name it.
    pub name: String,
    /// Rate that it has whenever it wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Rate>,
    /// Its part of what is no class's minimum, in proportion to the weights of others.
    pub weight: u32,
}

impl Wf2qParameters {
    /// The most classes.
    pub const MOST_CLASSES: usize = 1000;
    /// The weight of what belongs to no class.
    pub const WEIGHT_OF_REST: u32 = 1;

    /// The number of the class of what belongs to no other.
    #[must_use]
    pub fn rest(&self) -> usize {
        self.classes.len()
    }

    /// The sum of the minimums in bit/s.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        let minimums = self.classes.iter().filter_map(|class| class.min);
        minimums.map(Rate::bits_per_second).fold(0, u64::saturating_add)
    }

    /// What each class, and the rest, has in bit/s when all of them want more: its minimum, and of
    /// what is no minimum a part by its weight. At least 1 bit/s each, as nothing else would ever
    /// leave; where the minimums are more than the rate, they are to be scaled.
    #[must_use]
    pub fn shares(&self, rate: Rate) -> Vec<u64> {
        let spare = u128::from(rate.bits_per_second().saturating_sub(self.reserved()));
        let rest = (0, Wf2qParameters::WEIGHT_OF_REST);
        let classes = self.classes.iter().map(|class| {
            let min = class.min.map_or(0, Rate::bits_per_second);
            (min, class.weight)
        });
        let classes: Vec<(u64, u32)> = classes.chain([rest]).collect();
        let weights: u128 = classes.iter().map(|(_, weight)| u128::from(*weight)).sum();
        let share = |(min, weight): &(u64, u32)| {
            let part = spare * u128::from(*weight) / weights.max(1);
            min.saturating_add(u64::try_from(part).unwrap_or(u64::MAX)).max(1)
        };
        classes.iter().map(share).collect()
    }

    /// Whether its parameters can be worked with.
    pub(crate) fn is_sound(&self) -> bool {
        let weights = 1..=Demand::WEIGHT_MAX;
        (1..=FlowQueues::MOST_FLOWS).contains(&self.flows)
            && self.classes.len() <= Wf2qParameters::MOST_CLASSES
            && self.classes.iter().all(|class| weights.contains(&class.weight))
    }
}

impl Default for Wf2qParameters {
    fn default() -> Self {
        Wf2qParameters { flows: 1024, classes: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(min: Option<u64>, weight: u32) -> SendShare {
        let min = min.and_then(Rate::from_bits_per_second);
        SendShare { name: String::from("a"), min, weight }
    }

    fn shares(classes: &[SendShare], rate: u64) -> Vec<u64> {
        let wf2q = Wf2qParameters { classes: classes.to_vec(), ..Wf2qParameters::default() };
        wf2q.shares(Rate::from_bits_per_second(rate).unwrap())
    }

    #[test]
    fn a_class_has_its_minimum_and_a_part_of_what_is_left_by_its_weight() {
        assert_eq!(shares(&[class(None, 3), class(None, 1)], 1000), [600, 200, 200]);
        assert_eq!(shares(&[class(Some(500), 1), class(None, 3)], 1000), [600, 300, 100]);
        assert_eq!(shares(&[], 1000), [1000]);
    }

    #[test]
    fn no_class_is_left_without_any_share() {
        assert_eq!(shares(&[class(Some(1000), 1)], 1000), [1000, 1]);
        assert_eq!(shares(&[class(Some(900), 1), class(Some(900), 1)], 1000), [900, 900, 1]);
    }
}
