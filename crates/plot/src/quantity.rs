//! What numbers are, and the unit in which an axis shows them.

/// What the numbers of an axis are. Values are in the base unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AxisQuantity {
    /// bit/s.
    BitRate,
    /// Nanoseconds, shown in the unit that fits.
    Nanoseconds,
    /// Seconds, shown in seconds.
    Seconds,
    Bytes,
    Packets,
    /// Packets a second.
    PacketRate,
    /// Processors.
    Cpus,
    /// A part of a whole, from 0 to 1.
    Share,
}

/// A unit: its name, and how many base units it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct AxisUnit {
    pub(crate) name: &'static str,
    pub(crate) size: f64,
}

impl AxisQuantity {
    /// The unit for an axis whose greatest value this is: the largest of which there is at least
    /// one.
    pub(crate) fn unit(self, greatest: f64) -> AxisUnit {
        let units = self.units();
        let fits = units.iter().rev().find(|unit| greatest >= unit.size);
        *fits.unwrap_or(&units[0])
    }

    /// Whether only whole numbers have a meaning.
    pub(crate) fn is_whole(self) -> bool {
        self == AxisQuantity::Packets
    }

    /// Ascending.
    fn units(self) -> &'static [AxisUnit] {
        match self {
            AxisQuantity::BitRate => &BIT_RATES,
            AxisQuantity::Nanoseconds => &TIMES,
            AxisQuantity::Seconds => &SECONDS,
            AxisQuantity::Bytes => &BYTES,
            AxisQuantity::Packets => &PACKETS,
            AxisQuantity::PacketRate => &PACKET_RATES,
            AxisQuantity::Cpus => &CPUS,
            AxisQuantity::Share => &SHARES,
        }
    }
}

const fn unit(name: &'static str, size: f64) -> AxisUnit {
    AxisUnit { name, size }
}

const BIT_RATES: [AxisUnit; 4] =
    [unit("bit/s", 1.0), unit("kbit/s", 1e3), unit("Mbit/s", 1e6), unit("Gbit/s", 1e9)];
const TIMES: [AxisUnit; 4] = [unit("ns", 1.0), unit("µs", 1e3), unit("ms", 1e6), unit("s", 1e9)];
const SECONDS: [AxisUnit; 1] = [unit("s", 1.0)];
const BYTES: [AxisUnit; 4] = [unit("B", 1.0), unit("kB", 1e3), unit("MB", 1e6), unit("GB", 1e9)];
const PACKETS: [AxisUnit; 1] = [unit("packets", 1.0)];
const PACKET_RATES: [AxisUnit; 1] = [unit("packets/s", 1.0)];
const CPUS: [AxisUnit; 1] = [unit("CPUs", 1.0)];
const SHARES: [AxisUnit; 1] = [unit("", 1.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_largest_that_fits_once() {
        let name = |quantity: AxisQuantity, greatest: f64| quantity.unit(greatest).name;
        assert_eq!(name(AxisQuantity::BitRate, 999_999.0), "kbit/s");
        assert_eq!(name(AxisQuantity::BitRate, 1e6), "Mbit/s");
        assert_eq!(name(AxisQuantity::BitRate, 0.0), "bit/s");
        assert_eq!(name(AxisQuantity::Nanoseconds, 2.5e6), "ms");
        assert_eq!(name(AxisQuantity::Packets, 1e9), "packets");
    }
}
