//! Whether reservations fit: what all of them ask of a resource together, against what there is.
//!
//! Nothing is half admitted: a request that lacks something changes nothing.
//!
//! ```
//! use windtunnel_budget::admission::{ReservationHolder, admit};
//! use windtunnel_model::ResourceAmounts;
//!
//! let amounts = |cpu, memory| ResourceAmounts {
//!     cpu_millis: Some(cpu),
//!     memory: Some(memory),
//!     ..ResourceAmounts::default()
//! };
//! let (all, held) = (amounts(2_000, 8_000_000_000), amounts(500, 0));
//! let held = [ReservationHolder { name: "quickstart".into(), amounts: held }];
//! let asked = amounts(1_900, 64_000_000);
//! let lacking = admit(all, &held, asked).unwrap_err();
//! assert_eq!(
//!     lacking[0].to_string(),
//!     "cpu: 2.4 of 2.0 cores asked: 0.4 missing; held by run 'quickstart' 0.5",
//! );
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use windtunnel_model::{Resource, ResourceAmounts};

/// One that has reservations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReservationHolder {
    pub name: String,
    pub amounts: ResourceAmounts,
}

/// A resource of which less is free than was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceShortfall {
    pub resource: Resource,
    /// What all have and ask together, in the resource's unit.
    pub asked: u64,
    pub capacity: u64,
    /// The reservation whose capacity it is; `None`: the machine's.
    pub of: Option<String>,
    /// By whom how much is held already, the most first.
    pub held: Vec<(String, u64)>,
}

/// What can be reserved.
pub const RESERVABLE: [Resource; 2] = [Resource::Cpu, Resource::Memory];

/// Whether `asked` fits beside what is held.
///
/// # Errors
/// Each resource of which there is too little. One of which nothing is asked lacks nothing.
pub fn admit(
    capacity: ResourceAmounts,
    held: &[ReservationHolder],
    asked: ResourceAmounts,
) -> Result<(), Vec<ResourceShortfall>> {
    let all = held.iter().fold(asked, |sum, holder| sum.plus(holder.amounts));
    let lacks = |resource: &Resource| {
        asked.amount(*resource) > 0 && all.amount(*resource) > capacity.amount(*resource)
    };
    let resources = RESERVABLE.into_iter().filter(lacks);
    let lacking: Vec<ResourceShortfall> = resources
        .map(|resource| ResourceShortfall {
            resource,
            asked: all.amount(resource),
            capacity: capacity.amount(resource),
            of: None,
            held: holders(held, resource),
        })
        .collect();
    if lacking.is_empty() { Ok(()) } else { Err(lacking) }
}

fn holders(held: &[ReservationHolder], resource: Resource) -> Vec<(String, u64)> {
    let amounts = held.iter().map(|holder| (&holder.name, holder.amounts.amount(resource)));
    let mut some: Vec<(String, u64)> =
        amounts.filter(|(_, amount)| *amount > 0).map(|(name, it)| (name.clone(), it)).collect();
    some.sort_by_key(|(_, amount)| core::cmp::Reverse(*amount));
    some
}

impl fmt::Display for ResourceShortfall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let amount = |amount| shown(self.resource, amount);
        let missing = self.asked.saturating_sub(self.capacity);
        write!(f, "{}: ", self.resource)?;
        let unit = if self.resource == Resource::Cpu { " cores" } else { "" };
        write!(f, "{} of {}{unit}", amount(self.asked), amount(self.capacity))?;
        if let Some(of) = &self.of {
            write!(f, " of reservation '{of}'")?;
        }
        write!(f, " asked: {} missing", amount(missing))?;
        for (index, (name, held)) in self.held.iter().enumerate() {
            let before = if index == 0 { "; held by" } else { "," };
            write!(f, "{before} run '{name}' {}", amount(*held))?;
        }
        Ok(())
    }
}

/// An amount as people read it. Nothing that is missing reads as nothing.
#[must_use]
pub fn shown(resource: Resource, amount: u64) -> String {
    if resource == Resource::Cpu { cores(amount) } else { bytes(amount) }
}

/// `2.0`, `0.25`: at least one decimal.
fn cores(millis: u64) -> String {
    let decimals = format!("{:03}", millis % 1000);
    let shown = decimals.trim_end_matches('0');
    let shown = if shown.is_empty() { "0" } else { shown };
    format!("{}.{shown}", millis / 1000)
}

/// Three digits at least, in the largest unit that leaves them; small amounts exactly.
fn bytes(amount: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    let Some((unit, name)) = units.into_iter().find(|(unit, _)| amount >= *unit) else {
        return format!("{amount}B");
    };
    let hundredths = amount / (unit / 100);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.').to_string();
    format!("{text}{name}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn amounts(cpu_millis: u64, memory_bytes: u64) -> ResourceAmounts {
        let (cpu_millis, memory) = (Some(cpu_millis), Some(memory_bytes));
        ResourceAmounts { cpu_millis, memory, ..ResourceAmounts::default() }
    }

    fn holder(name: &str, cpu_millis: u64, memory_bytes: u64) -> ReservationHolder {
        ReservationHolder { name: name.to_owned(), amounts: amounts(cpu_millis, memory_bytes) }
    }

    fn lacking(
        capacity: ResourceAmounts,
        held: &[ReservationHolder],
        asked: ResourceAmounts,
    ) -> Vec<String> {
        let all = admit(capacity, held, asked).err().unwrap_or_default();
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_missing_is_said_with_all_that_hold_some_of_it() {
        let held = [holder("a", 250, 1), holder("b", 0, 9_000_000_000), holder("c", 500, 0)];
        assert_eq!(
            lacking(amounts(2_000, 8_000_000_000), &held, amounts(1_500, 1_500_000_000)),
            [
                "cpu: 2.25 of 2.0 cores asked: 0.25 missing; held by run 'c' 0.5, run 'a' 0.25",
                "memory: 10.5GB of 8GB asked: 2.5GB missing; held by run 'b' 9GB, run 'a' 1B",
            ]
        );
    }

    #[test]
    fn what_fits_to_the_last_thousandth_is_admitted() {
        let held = [holder("a", 999, 0)];
        assert_eq!(lacking(amounts(1_000, 0), &held, amounts(1, 0)), [""; 0]);
        assert_eq!(lacking(amounts(1_000, 0), &held, amounts(2, 0)).len(), 1);
    }

    #[test]
    fn nothing_fits_always_even_where_others_hold_more_than_there_is() {
        let held = [holder("a", 9_000, 9)];
        assert_eq!(lacking(amounts(1_000, 1), &held, ResourceAmounts::default()), [""; 0]);
        let only_memory = lacking(amounts(1_000, 100), &held, amounts(0, 5));
        assert_eq!(only_memory, [""; 0]);
    }

    proptest! {
        #[test]
        fn all_that_was_admitted_fits_together(
            capacity in 0_u64..5_000,
            asked in proptest::collection::vec(0_u64..1_000, 0..40),
        ) {
            let mut held: Vec<ReservationHolder> = Vec::new();
            for (index, cpu) in asked.into_iter().enumerate() {
                let sum: u64 = held.iter().map(|it| it.amounts.amount(Resource::Cpu)).sum();
                let admitted = admit(amounts(capacity, 0), &held, amounts(cpu, 0)).is_ok();
                prop_assert_eq!(admitted, cpu == 0 || sum + cpu <= capacity);
                if admitted {
                    held.push(holder(&index.to_string(), cpu, 0));
                }
            }
            let sum: u64 = held.iter().map(|it| it.amounts.amount(Resource::Cpu)).sum();
            prop_assert!(sum <= capacity);
        }
    }
}
