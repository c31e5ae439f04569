//! How long light takes between two places.

use windtunnel_model::Span;

/// The mean radius of the Earth in km (IUGG; Moritz, Geodetic Reference System 1980).
const EARTH_RADIUS_KM: f64 = 6_371.008_8;
/// The speed of light in vacuum in km/s.
const LIGHT_KM_PER_S: f64 = 299_792.458;
/// What is left of it in glass fibre.
const IN_FIBRE: f64 = 2.0 / 3.0;

/// A place on Earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Coordinates {
    latitude: f64,
    longitude: f64,
}

impl Coordinates {
    /// `None` outside of ±90° and ±180°.
    pub(super) fn new(latitude: f64, longitude: f64) -> Option<Self> {
        let fits = latitude.abs() <= 90.0 && longitude.abs() <= 180.0;
        fits.then_some(Coordinates { latitude, longitude })
    }

    /// The great-circle distance in km (haversine formula; Sinnott 1984).
    pub(super) fn distance_km(self, other: Coordinates) -> f64 {
        let radians = |degrees: f64| degrees * std::f64::consts::PI / 180.0;
        let (a, b) = (radians(self.latitude), radians(other.latitude));
        let half = |difference: f64| libm::sin(radians(difference) / 2.0);
        let north = half(other.latitude - self.latitude);
        let east = half(other.longitude - self.longitude);
        let haversine = north * north + libm::cos(a) * libm::cos(b) * east * east;
        2.0 * EARTH_RADIUS_KM * libm::asin(libm::sqrt(haversine.clamp(0.0, 1.0)))
    }

    /// The time that light takes over the great circle at 2/3 c, to the nearest microsecond.
    pub(super) fn latency(self, other: Coordinates) -> Span {
        let micros = self.distance_km(other) / (LIGHT_KM_PER_S * IN_FIBRE) * 1e6;
        // At most 100 138 µs: half around the Earth.
        let steps = (0..=17).rev().map(|bit| 1_u32 << bit);
        let rounded =
            steps.fold(
                0_u32,
                |sum, step| {
                    if f64::from(sum + step) <= micros + 0.5 { sum + step } else { sum }
                },
            );
        Span::from_micros(rounded.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Coordinates {
        Coordinates::new(latitude, longitude).unwrap()
    }

    #[test]
    fn a_quarter_of_the_equator_and_half_around_the_earth() {
        // π/2 · 6371.0088 km = 10 007.557 km at 199 861.639 km/s: 50.0724 ms; twice that for half.
        let quarter = at(0.0, 0.0).latency(at(0.0, 90.0));
        assert_eq!(quarter, Span::from_micros(50_072));
        assert_eq!(at(90.0, 0.0).latency(at(0.0, 33.0)), quarter);
        assert_eq!(at(0.0, -90.0).latency(at(0.0, 90.0)), Span::from_micros(100_145));
        assert_eq!(at(50.0, 4.0).latency(at(50.0, 4.0)), Span::ZERO);
    }

    #[test]
    fn from_paris_to_new_york_it_is_5837_km() {
        let (paris, new_york) = (at(48.8566, 2.3522), at(40.7128, -74.0060));
        assert!((paris.distance_km(new_york) - 5_837.2).abs() < 1.0);
        // 5837.24 km / 199 861.639 km/s = 29.2064 ms.
        let latency = paris.latency(new_york);
        assert!((29_200..29_212).contains(&(latency.as_nanos() / 1_000)), "{latency}");
        assert_eq!(latency, new_york.latency(paris));
    }

    #[test]
    fn places_that_are_not_on_earth_are_none() {
        assert_eq!(Coordinates::new(90.5, 0.0), None);
        assert_eq!(Coordinates::new(0.0, -181.0), None);
        assert_eq!(Coordinates::new(f64::NAN, 0.0), None);
    }
}
