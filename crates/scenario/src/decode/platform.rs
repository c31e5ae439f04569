//! The platform of a node's image.

use windtunnel_model::plan::{ARCHITECTURES, Platform, PlatformError};

use crate::grammar::{Decoder, YamlMapEntry, form, text};
use crate::text::{nearest, shorten};

form! {
    /// A platform as images name it: `linux/ARCHITECTURE`, perhaps with `/VARIANT`.
    pub(super) WrittenPlatform: Platform, by read_platform, like text
}

fn read_platform(from: &mut Decoder<'_>, field: YamlMapEntry<'_>) -> Option<Platform> {
    let text = from.text(field, "a platform, such as `linux/arm64`")?;
    if let Ok(platform) = text.parse() {
        return Some(platform);
    }
    let shown = shorten(text);
    let error = shown.parse::<Platform>().err().unwrap_or(PlatformError::Form(shown));
    from.mistake_with_hint(field.wrong(), format!("platform: {error}"), hint(text, &error));
    None
}

fn hint(text: &str, error: &PlatformError) -> String {
    if let PlatformError::Variant(_) = error {
        return "`linux/amd64` has v1 to v4, `linux/arm` v5 to v8, and `linux/arm64` v8 and v9"
            .to_owned();
    }
    let without_system = format!("linux/{text}").parse::<Platform>();
    if let (PlatformError::Form(_), Ok(platform)) = (error, without_system) {
        return format!("write `{platform}`");
    }
    let known = ARCHITECTURES.map(|name| format!("linux/{name}"));
    match nearest(text, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are {}", known.map(|name| format!("`{name}`")).join(", ")),
    }
}
