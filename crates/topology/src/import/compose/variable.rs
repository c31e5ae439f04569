//! Variables in texts. Source: the Compose Specification, "Interpolation".

use std::collections::BTreeMap;

/// The text with its variables replaced by their values, and those that have none by nothing, and
/// the names of these.
///
/// # Errors
/// What `${NAME:?…}` says where there is no value.
pub(super) fn replaced(
    text: &str,
    variables: &BTreeMap<String, String>,
) -> Result<(String, Vec<String>), String> {
    let (mut result, mut unknown) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((inside, after)) = braced(rest) {
            let (text, missing) = expanded(inside, variables)?;
            result.push_str(&text);
            unknown.extend(missing);
            rest = after;
        } else {
            let end = rest.find(|c: char| !of_name(c)).unwrap_or(rest.len());
            let name = &rest[..end];
            match variables.get(name) {
                Some(value) => result.push_str(value),
                None if end == 0 => result.push('$'),
                None => unknown.push(name.to_owned()),
            }
            rest = &rest[end..];
        }
    }
    result.push_str(rest);
    Ok((result, unknown))
}

fn of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// What stands in braces: a name, and what is to happen with or without its value.
fn expanded(
    inside: &str,
    variables: &BTreeMap<String, String>,
) -> Result<(String, Vec<String>), String> {
    let end = inside.find(|c: char| !of_name(c)).unwrap_or(inside.len());
    let (name, rest) = inside.split_at(end);
    let (also_empty, rest) = match rest.strip_prefix(':') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let value = variables.get(name).filter(|value| !(also_empty && value.is_empty()));
    let mut rest = rest.chars();
    match (rest.next(), value) {
        (Some('+'), Some(_)) => replaced(rest.as_str(), variables),
        (Some('+'), None) => Ok((String::new(), Vec::new())),
        (_, Some(value)) => Ok((value.clone(), Vec::new())),
        (Some('-'), None) => replaced(rest.as_str(), variables),
        (Some('?'), None) => {
            let (why, _) = replaced(rest.as_str(), variables)?;
            let why = if why.is_empty() { "it is required".to_owned() } else { why };
            Err(format!("the variable `{name}` is not set: {why}"))
        }
        _ => Ok((String::new(), vec![name.to_owned()])),
    }
}

/// What is in the braces at the beginning, in which others may stand, and what is behind them.
fn braced(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix('{')?;
    let mut open = 1_u32;
    for (at, c) in inside.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open == 1 => return Some((&inside[..at], &inside[at + 1..])),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the table of the specification has it.
    #[test]
    fn variables_are_replaced_and_those_without_a_value_are_named() {
        let set = [("SET", "v"), ("EMPTY", "")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let variables = BTreeMap::from(set);
        let cases = [
            ("redis:${TAG:-7}-x", "redis:7-x", ""),
            ("a ${A-} $$HOME $B/${C}", "a  $HOME /", "B C"),
            ("cost: 5$ and ${open", "cost: 5$ and ${open", ""),
            ("$SET ${SET} ${SET:-d} ${SET:?e}", "v v v v", ""),
            ("[${EMPTY-d}] [${EMPTY:-d}] [${EMPTY?e}]", "[] [d] []", ""),
            ("[${SET:+r}] [${EMPTY:+r}] [${EMPTY+r}] [${NONE+r}]", "[r] [] [r] []", ""),
            ("${NONE:-${SET:-x}}/${NONE:-${OTHER}}", "v/", "OTHER"),
        ];
        for (text, expected, unknown) in cases {
            let (seen, missing) = replaced(text, &variables).unwrap();
            assert_eq!((seen.as_str(), missing.join(" ").as_str()), (expected, unknown), "{text}");
        }
        let error = |text: &str| replaced(text, &variables).unwrap_err();
        assert_eq!(error("${EMPTY:?give one}"), "the variable `EMPTY` is not set: give one");
        assert_eq!(error("a ${NONE?}"), "the variable `NONE` is not set: it is required");
    }
}
