//! Variables in texts. Source: the Compose Specification, "Interpolation".

/// The text with `${NAME:-default}` and `${NAME-default}` replaced by their default, `$$` by `$`, and
/// other variables by nothing; their names.
pub(super) fn replaced(text: &str) -> (String, Vec<String>) {
    let (mut result, mut unknown) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
        } else if let Some((inside, after)) = braced(rest) {
            let (name, default) = split(inside);
            match default {
                Some(default) => result.push_str(default),
                None => unknown.push(name.to_owned()),
            }
            rest = after;
        } else {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            let end = end.unwrap_or(rest.len());
            match end {
                0 => result.push('$'),
                end => unknown.push(rest[..end].to_owned()),
            }
            rest = &rest[end..];
        }
    }
    result.push_str(rest);
    (result, unknown)
}

/// What is in the braces at the beginning, and what is behind them.
fn braced(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.split_once('}')
}

/// The name, and what stands for it where it is not set.
fn split(inside: &str) -> (&str, Option<&str>) {
    let end = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let (name, rest) = inside.split_at(end.unwrap_or(inside.len()));
    (name, rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_stand_for_variables_and_others_are_named() {
        let case = |text: &str| {
            let (text, unknown) = replaced(text);
            (text, unknown.join(" "))
        };
        let of = |text: &str, unknown: &str| (text.to_owned(), unknown.to_owned());
        assert_eq!(case("redis:${TAG:-7}-x"), of("redis:7-x", ""));
        assert_eq!(case("a ${A-} $$HOME $B/${C:?why}"), of("a  $HOME /", "B C"));
        assert_eq!(case("cost: 5$ and ${open"), of("cost: 5$ and ${open", ""));
    }
}
