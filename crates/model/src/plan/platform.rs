//! Platforms: the system and the processor that programs are made for.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};

/// A system and a processor by the names that images have for them, as text `linux/arm64` or `linux/arm/v7`.
/// Other names of processors are made these (`aarch64`), and the variant that each has by default is left
/// out, but for `arm`: as Docker has it (containerd's `platforms.Normalize`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

impl Platform {
    /// What a document names, whether that is known or not; empty texts say nothing.
    #[must_use]
    pub fn new(os: &str, architecture: &str, variant: &str) -> Platform {
        let [os, architecture, variant] = [os, architecture, variant].map(str::to_ascii_lowercase);
        let variant = match variant.bytes().next() {
            Some(first) if first.is_ascii_digit() => ["v", variant.as_str()].concat(),
            _ => variant,
        };
        let (architecture, variant) = normal(&architecture, &variant);
        let os = if os.is_empty() { LINUX.to_owned() } else { os };
        let variant = (!variant.is_empty()).then(|| variant.to_owned());
        Platform { os, architecture: architecture.to_owned(), variant }
    }

    /// That of Linux on a processor by the name that a compiler has for it (`x86_64`).
    #[must_use]
    pub fn of_machine(architecture: &str) -> Platform {
        Platform::new(LINUX, architecture, "")
    }

    /// Its processor, by the name that images have for it (Go's `GOARCH`).
    #[must_use]
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// How far what is `found` is from what is asked for: 0 is that itself, 1 what is made for the variant
    /// before it, which such a processor runs as well. `None`: it is for others.
    #[must_use]
    pub fn distance(&self, found: &Platform) -> Option<u32> {
        if self == found {
            return Some(0);
        }
        self.is_kin(found).then_some(())?;
        self.level()?.checked_sub(found.level()?)
    }

    /// Whether they have the same system and architecture, of whatever variants.
    #[must_use]
    pub fn is_kin(&self, other: &Platform) -> bool {
        self.os == other.os && self.architecture == other.architecture
    }

    /// The number of the variant.
    fn level(&self) -> Option<u32> {
        match (&self.variant, self.architecture.as_str()) {
            (Some(variant), _) => variant.strip_prefix('v')?.parse().ok(),
            (None, "amd64") => Some(1),
            (None, "arm64") => Some(8),
            (None, _) => None,
        }
    }
}

/// What images call a processor with its variant; an empty one is the one by default.
fn normal<'a>(architecture: &'a str, variant: &'a str) -> (&'a str, &'a str) {
    match (architecture, variant) {
        ("i386" | "i686" | "x86" | "386", _) => ("386", ""),
        ("x86_64" | "x86-64" | "amd64", "v1") => ("amd64", ""),
        ("x86_64" | "x86-64" | "amd64", variant) => ("amd64", variant),
        ("aarch64" | "arm64", "v8") => ("arm64", ""),
        ("aarch64" | "arm64", variant) => ("arm64", variant),
        ("armhf" | "armv7l", _) | ("arm", "") => ("arm", "v7"),
        ("armel" | "armv6l", _) => ("arm", "v6"),
        ("powerpc64le", variant) => ("ppc64le", variant),
        ("loongarch64", variant) => ("loong64", variant),
        other => other,
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let mut parts = text.split('/');
        let (os, architecture) = (parts.next().unwrap_or(""), parts.next());
        let (variant, rest) = (parts.next(), parts.next());
        let form = || PlatformError::Form(text.to_owned());
        let architecture = architecture.ok_or_else(form)?;
        if rest.is_some() || [os, architecture].contains(&"") || variant == Some("") {
            return Err(form());
        }
        let platform = Platform::new(os, architecture, variant.unwrap_or(""));
        if platform.os != LINUX {
            return Err(PlatformError::System(os.to_owned()));
        }
        if !ARCHITECTURES.contains(&platform.architecture()) {
            return Err(PlatformError::Architecture(architecture.to_owned()));
        }
        let of_variant = |c: char| c.is_ascii_alphanumeric() || c == '.';
        let is_variant = |it: &str| it.len() <= 20 && it.chars().all(of_variant);
        match variant.is_none_or(is_variant) && is_variant_known(&platform) {
            true => Ok(platform),
            false => Err(PlatformError::Variant(text.to_owned())),
        }
    }
}

/// Whether a processor has such a variant, where it is known which there are.
fn is_variant_known(platform: &Platform) -> bool {
    let Some(level) = platform.level() else { return platform.variant.is_none() };
    match platform.architecture() {
        "amd64" => (1..=4).contains(&level),
        "arm" => (5..=8).contains(&level),
        "arm64" => (8..=9).contains(&level),
        _ => platform.variant.is_none(),
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> String {
        platform.to_string()
    }
}

impl TryFrom<String> for Platform {
    type Error = PlatformError;

    fn try_from(text: String) -> Result<Self, PlatformError> {
        text.parse()
    }
}

/// Why a text names no platform that a node can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlatformError {
    #[error("`{0}` is not `linux/ARCHITECTURE` or `linux/ARCHITECTURE/VARIANT`")]
    Form(String),
    #[error("`{0}` is not `linux`, and nodes run programs of Linux")]
    System(String),
    #[error("`{0}` is no architecture that images are known to have")]
    Architecture(String),
    #[error("`{0}` has a variant that is not known")]
    Variant(String),
}

const LINUX: &str = "linux";

/// Processors that Linux and images know. Source: Go's list of `GOOS/GOARCH`.
pub const ARCHITECTURES: [&str; 13] = [
    "386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64",
    "ppc64le", "riscv64", "s390x",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Platform {
        text.parse().unwrap()
    }

    #[test]
    fn names_of_processors_are_made_those_of_docker() {
        let cases = [
            ("linux/aarch64", "linux/arm64"),
            ("linux/arm64/v8", "linux/arm64"),
            ("linux/arm64/8", "linux/arm64"),
            ("linux/arm64/v9", "linux/arm64/v9"),
            ("linux/x86_64", "linux/amd64"),
            ("Linux/AMD64/v1", "linux/amd64"),
            ("linux/amd64/v3", "linux/amd64/v3"),
            ("linux/i386", "linux/386"),
            ("linux/arm", "linux/arm/v7"),
            ("linux/arm/7", "linux/arm/v7"),
            ("linux/armhf", "linux/arm/v7"),
            ("linux/armel", "linux/arm/v6"),
            ("linux/arm/v5", "linux/arm/v5"),
            ("linux/arm/v8", "linux/arm/v8"),
            ("linux/riscv64", "linux/riscv64"),
        ];
        for (text, normal) in cases {
            assert_eq!(read(text).to_string(), normal, "{text}");
            assert_eq!(read(normal), read(text), "{text}");
        }
        assert_eq!(Platform::of_machine("aarch64"), read("linux/arm64"));
        assert_eq!(Platform::new("", "powerpc64le", "").to_string(), "linux/ppc64le");
    }

    #[test]
    fn what_is_no_platform_of_linux_says_what_is_wrong_with_it() {
        use PlatformError as Error;
        for text in ["", "linux", "arm64", "linux/", "/arm64", "linux/arm/", "linux/arm/v7/x"] {
            assert_eq!(text.parse::<Platform>(), Err(Error::Form(text.into())), "{text}");
        }
        let system = Err(Error::System("windows".into()));
        assert_eq!("windows/amd64".parse::<Platform>(), system);
        let architecture = Err(Error::Architecture("arm46".into()));
        assert_eq!("linux/arm46".parse::<Platform>(), architecture);
        for text in ["linux/arm/v4", "linux/arm/seven", "linux/amd64/v9", "linux/s390x/v1"] {
            assert_eq!(text.parse::<Platform>(), Err(Error::Variant(text.into())), "{text}");
        }
    }

    #[test]
    fn a_processor_runs_what_is_made_for_its_variant_and_those_before_it() {
        let distance = |asked: &str, found: &str| read(asked).distance(&read(found));
        assert_eq!(distance("linux/arm/v7", "linux/arm/v7"), Some(0));
        assert_eq!(distance("linux/arm/v7", "linux/arm/v5"), Some(2));
        assert_eq!(distance("linux/arm/v6", "linux/arm/v7"), None);
        assert_eq!(distance("linux/arm64", "linux/arm64/v8"), Some(0));
        assert_eq!(distance("linux/arm64/v9", "linux/arm64"), Some(1));
        assert_eq!(distance("linux/arm64", "linux/arm64/v9"), None);
        assert_eq!(distance("linux/amd64/v3", "linux/amd64"), Some(2));
        assert_eq!(distance("linux/s390x", "linux/s390x"), Some(0));
        // Other architectures, even those that some processors run.
        assert_eq!(distance("linux/arm64", "linux/arm/v7"), None);
        assert_eq!(distance("linux/amd64", "linux/386"), None);
    }
}
