//! Small texts: quoting what was written, and guessing what was meant.

/// What was written, short enough for a message, without control characters.
pub(crate) fn shorten(text: &str) -> String {
    const SHOWN: usize = 40;
    let mut shown: String = text
        .chars()
        .take(SHOWN)
        .map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c })
        .collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push('…');
    }
    shown
}

/// The candidate that `text` most likely was meant to be, if one is near.
#[must_use]
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if text.len() > 80 {
        return None;
    }
    // A letter in three may be wrong: `r1` is not a hint for `r2`.
    let most = (text.chars().count() / 3).min(3);
    let wanted = text.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|candidate| (strsim::osa_distance(&wanted, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `a`, `b` or `c`.
pub(crate) fn list(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

/// Units that people write and that mean bits to some and bytes to others.
pub(crate) fn hint_for_unit(text: &str) -> Option<&'static str> {
    let text = text.trim();
    if text.to_ascii_lowercase().ends_with("bps") {
        Some("write `mbit` for a million bits a second, `MB/s` for a million bytes")
    } else if text.ends_with('b') {
        Some("write `KB`, `MB` or `GB` for bytes")
    } else {
        None
    }
}
