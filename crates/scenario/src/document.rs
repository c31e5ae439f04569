//! A text as one tree; what keeps it from being one is a mistake like any other.

use crate::error::Diagnostics;
use crate::position::SourceLocation;
use crate::source::LARGEST_FILE;
use crate::tree::{TreeError, YamlValue, YamlValueKind, parse};

/// The bytes as text, if they are text at all.
pub(crate) fn check_text<'t>(found: &mut Diagnostics, bytes: &'t [u8]) -> Option<&'t str> {
    if bytes.len() > LARGEST_FILE {
        let megabytes = LARGEST_FILE >> 20;
        found.mistake(SourceLocation::START, format!("the file is larger than {megabytes} MiB"));
        return None;
    }
    let hint = "a scenario is a text file in UTF-8";
    match std::str::from_utf8(bytes) {
        Ok(text) => match text.find('\0') {
            Some(at) => {
                found.mistake_with_hint(place_of(&bytes[..at]), "a NUL byte", hint);
                None
            }
            None => Some(text),
        },
        Err(error) => {
            let at = error.valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or(0);
            let message = format!("the byte 0x{byte:02x} is not UTF-8");
            found.mistake_with_hint(place_of(&bytes[..at]), message, hint);
            None
        }
    }
}

/// The tree of a text; `nothing` is the mistake and the hint for an empty one.
pub(crate) fn root(
    found: &mut Diagnostics,
    text: &str,
    nothing: (&str, &str),
) -> Option<YamlValue> {
    match parse(text) {
        Ok(Some(root)) if !matches!(root.kind, YamlValueKind::Null) => Some(root),
        Ok(_) => {
            found.mistake_with_hint(SourceLocation::START, nothing.0, nothing.1);
            None
        }
        Err(TreeError { place, message, hint: Some(hint) }) => {
            found.mistake_with_hint(place, message, hint);
            None
        }
        Err(TreeError { place, message, hint: None }) => {
            found.mistake(place, message);
            None
        }
    }
}

/// The place just after `before`.
fn place_of(before: &[u8]) -> SourceLocation {
    let text = String::from_utf8_lossy(before);
    let lines = text.replace("\r\n", "\n");
    let line = lines.matches(['\n', '\r']).count() + 1;
    let column = lines.rsplit(['\n', '\r']).next().unwrap_or("").chars().count() + 1;
    let clamp = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
    SourceLocation { line: clamp(line), column: clamp(column), length: 1 }
}
