//! Which platform an image is to be for.

use std::path::Path;

use windtunnel_model::plan::Platform;

use crate::error::ImageError;

/// A platform that is asked for: by the file, or because it is this machine's.
#[derive(Debug, Clone)]
pub(super) struct PlatformRequest {
    platform: Platform,
    is_own: bool,
}

impl PlatformRequest {
    pub(super) fn new(platform: Option<&Platform>) -> PlatformRequest {
        let own = || Platform::of_machine(std::env::consts::ARCH);
        PlatformRequest {
            platform: platform.cloned().unwrap_or_else(own),
            is_own: platform.is_none(),
        }
    }

    /// What the programs of an image will be for that says nothing of it.
    pub(super) fn platform(&self) -> &Platform {
        &self.platform
    }

    /// Whether it is what is asked for.
    pub(super) fn is_met_by(&self, found: &Platform) -> bool {
        self.rank(found).is_some()
    }

    /// The one of `all` that fits best, the first of equals; if none does, their platforms.
    pub(super) fn best<T>(
        &self,
        all: Vec<T>,
        platform_of: impl Fn(&T) -> Option<Platform>,
    ) -> Result<T, Vec<Platform>> {
        let found: Vec<Platform> = all.iter().filter_map(&platform_of).collect();
        let rank = |one: &T| match platform_of(one) {
            Some(platform) => self.rank(&platform),
            // Its configuration says more.
            None => Some(u32::MAX),
        };
        let ranked = all.into_iter().filter_map(|one| Some((rank(&one)?, one)));
        ranked.min_by_key(|(rank, _)| *rank).map(|(_, one)| one).ok_or(found)
    }

    pub(super) fn refusal(&self, path: &Path, found: Vec<Platform>) -> ImageError {
        let (wanted, is_own) = (self.platform.clone(), self.is_own);
        ImageError::Platform { path: path.to_owned(), wanted: Box::new(wanted), found, is_own }
    }

    /// How far it is from what is asked for; `None`: it is for others.
    fn rank(&self, found: &Platform) -> Option<u32> {
        let variant = || (self.is_own && self.platform.is_kin(found)).then_some(OTHER_VARIANT);
        self.platform.distance(found).or_else(variant)
    }
}

/// What this machine's variant is, is not known: if there is no other, an image for a later one is taken.
const OTHER_VARIANT: u32 = 1000;

#[cfg(test)]
mod tests {
    use super::*;

    fn best(asked: &str, all: &[&str]) -> Result<String, usize> {
        let asked = PlatformRequest::new(Some(&asked.parse().unwrap()));
        let all: Vec<Platform> = all.iter().map(|text| text.parse().unwrap()).collect();
        asked.best(all, |it| Some(it.clone())).map(|it| it.to_string()).map_err(|found| found.len())
    }

    #[test]
    fn the_nearest_variant_below_is_chosen_and_no_other_architecture() {
        let arm = ["linux/amd64", "linux/arm/v5", "linux/arm/v6", "linux/arm/v7", "linux/arm64/v8"];
        assert_eq!(best("linux/arm/v7", &arm), Ok("linux/arm/v7".into()));
        assert_eq!(best("linux/arm/v6", &arm), Ok("linux/arm/v6".into()));
        assert_eq!(best("linux/arm/v8", &arm), Ok("linux/arm/v7".into()));
        assert_eq!(best("linux/aarch64", &arm), Ok("linux/arm64".into()));
        assert_eq!(best("linux/386", &arm), Err(5));
        assert_eq!(best("linux/amd64", &["linux/amd64/v3", "linux/amd64/v2"]), Err(2));
    }

    #[test]
    fn a_machine_takes_a_later_variant_of_its_own_processor_if_there_is_no_other() {
        let own = PlatformRequest::new(None);
        let later = Platform::new("linux", std::env::consts::ARCH, "v9");
        let all = vec![later.clone(), own.platform().clone()];
        assert_eq!(own.best(all, |it| Some(it.clone())).unwrap(), *own.platform());
        assert!(own.is_met_by(&later));
        assert!(!PlatformRequest::new(Some(own.platform())).is_met_by(&later));
    }

    #[test]
    fn an_entry_that_names_no_platform_comes_last() {
        let asked = PlatformRequest::new(Some(&"linux/arm64".parse().unwrap()));
        let all = vec![None, Some("linux/arm64".parse::<Platform>().unwrap())];
        assert!(asked.best(all, Clone::clone).unwrap().is_some());
        let all = vec![Some("linux/amd64".parse::<Platform>().unwrap()), None];
        assert!(asked.best(all, Clone::clone).unwrap().is_none());
    }
}
