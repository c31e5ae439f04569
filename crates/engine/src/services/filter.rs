//! Whether an address may be that of a service: two multiplications and one load for nearly all of
//! those that are not.

use alloc::vec;
use alloc::vec::Vec;
use core::net::IpAddr;

/// Bits by a hash of addresses.
#[derive(Debug, Default)]
pub(crate) struct ServiceAddressFilter {
    /// A power of two of words; none where there are no services.
    words: Vec<u64>,
    mask: usize,
}

impl ServiceAddressFilter {
    pub(super) fn new(addresses: &[IpAddr]) -> ServiceAddressFilter {
        if addresses.is_empty() {
            return ServiceAddressFilter::default();
        }
        let bits = (addresses.len() * BITS_EACH).next_power_of_two().clamp(64, BITS_MAX);
        let mut filter = ServiceAddressFilter { words: vec![0; bits / 64], mask: bits / 64 - 1 };
        for address in addresses {
            let (word, bit) = filter.place(*address);
            filter.words[word] |= bit;
        }
        filter
    }

    /// `false`: it is none.
    #[inline]
    pub(crate) fn may_hold(&self, address: IpAddr) -> bool {
        if self.words.is_empty() {
            return false;
        }
        let (word, bit) = self.place(address);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(&self, address: IpAddr) -> (usize, u64) {
        let hash = match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()).wrapping_mul(FACTOR),
            IpAddr::V6(v6) => {
                let [high, low] = super::hash::halves(v6.to_bits());
                (high ^ low.rotate_left(32)).wrapping_mul(FACTOR)
            }
        };
        // Twice, since addresses are mostly numbered one after the other.
        let hash = (hash ^ hash >> 29).wrapping_mul(FACTOR);
        let word = usize::try_from(hash >> 40).unwrap_or(0) & self.mask;
        (word, 1 << (hash >> 34 & 63))
    }
}

/// Of 16 bits for each address, one in 16 of other addresses meets one at the most.
const BITS_EACH: usize = 16;
/// 32 KB: the size of a first-level cache.
const BITS_MAX: usize = 1 << 18;
/// 2⁶⁴ by the golden ratio, odd (Knuth, volume 3, 6.4).
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_that_is_there_is_found() {
        for count in [1u32, 100, 20_000] {
            let v4 = (0..count).map(|n| IpAddr::from((0x0a01_0000 + n * 7).to_be_bytes()));
            let v6 =
                (0..count).map(|n| IpAddr::from((0xfd00 << 112 | u128::from(n)).to_be_bytes()));
            let addresses: Vec<IpAddr> = v4.chain(v6).collect();
            let filter = ServiceAddressFilter::new(&addresses);
            assert!(addresses.iter().all(|address| filter.may_hold(*address)));
        }
    }

    #[test]
    fn few_others_are_taken_for_one() {
        let services: Vec<IpAddr> =
            (0..1000u32).map(|n| (0x0a01_0000 + n).to_be_bytes().into()).collect();
        let filter = ServiceAddressFilter::new(&services);
        let others = (0..60_000u32).map(|n| IpAddr::from((0x0a02_0000 + n).to_be_bytes()));
        let taken = others.filter(|address| filter.may_hold(*address)).count();
        // 1000 of 16 384 bits are set: 6.1 % of random addresses.
        assert!(taken < 6_000, "{taken} of 60000");
    }

    #[test]
    fn without_services_no_address_is_one() {
        assert!(!ServiceAddressFilter::new(&[]).may_hold([10, 0, 0, 1].into()));
    }
}
