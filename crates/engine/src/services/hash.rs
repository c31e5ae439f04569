//! Hashes by which services are found and shared out: the same on every machine.

use windtunnel_model::LinkDirection;
use windtunnel_model::plan::Plan;
use windtunnel_model::random::RandomStream;

/// A number for hashes that belongs to a name.
pub(super) fn salt(plan: &Plan, name: &str) -> u64 {
    RandomStream::derive(plan.seed, name, LinkDirection::Up, "service").at(0)
}

/// A well-mixed hash of an address and a number, the same on every machine: the finaliser of
/// SplitMix64 (Steele, Lea, Flood; OOPSLA 2014) over the parts.
pub(super) fn mix(address: u128, number: u64) -> u64 {
    let round = |value: u64| {
        let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ (value >> 31)
    };
    let [high, low] = halves(address);
    // The high half is all the same for IPv4.
    round(round(low ^ high.rotate_left(23)).wrapping_add(number.wrapping_mul(0x9e37_79b9)))
}

/// The high and the low half.
pub(super) fn halves(number: u128) -> [u64; 2] {
    [number >> 64, number & u128::from(u64::MAX)].map(|half| u64::try_from(half).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_the_same_on_every_machine() {
        // Worked out from the definition with whole numbers of any size.
        assert_eq!(halves(1 << 64 | 5), [1, 5]);
        assert_eq!(mix(0, 0), 0xa706_dd2f_4d19_7e6f);
        assert_eq!(mix(1, 0), 0x5e41_ab08_7439_611e);
        assert_eq!(mix(0xfd00 << 112 | 1, 443), 0x4ca3_ccf7_1d34_5f3f);
    }
}
