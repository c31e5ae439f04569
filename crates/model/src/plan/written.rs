//! Numbers and ports as people write them: `+80` and `080` are numbers for `parse`, and none for people.

use core::str::FromStr;

/// A number of plain digits without leading zeros.
pub(super) fn number<T: FromStr>(text: &str) -> Option<T> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    if plain && !leading { text.parse().ok() } else { None }
}

/// A port of TCP or UDP: from 1 to 65535.
pub(super) fn port(text: &str) -> Option<u16> {
    number(text).filter(|port| *port > 0)
}

/// A port, or `first-last`, where the last one is not below the first.
pub(super) fn ports(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    (first <= last).then_some((first, last))
}
