//! Whether a licence expression (SPDX 3.0, annex B) is met by some of the allowed licences.

/// Whether `expression` can be met with `allowed` licences alone. One that cannot be parsed is not.
pub(super) fn is_met(expression: &str, allowed: &[&str]) -> bool {
    // Old manifests write `MIT/Apache-2.0`.
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    any(&mut rest, allowed) == Some(true) && rest.is_empty()
}

/// `all OR all …`
fn any(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut met = all(words, allowed)?;
    while take(words, "OR") {
        met |= all(words, allowed)?;
    }
    Some(met)
}

/// `one AND one …`
fn all(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    let mut met = one(words, allowed)?;
    while take(words, "AND") {
        met &= one(words, allowed)?;
    }
    Some(met)
}

/// A licence, one with an exception, or an expression in parentheses.
fn one(words: &mut &[&str], allowed: &[&str]) -> Option<bool> {
    if take(words, "(") {
        let met = any(words, allowed)?;
        return take(words, ")").then_some(met);
    }
    let (name, rest) = words.split_first()?;
    *words = rest;
    if take(words, "WITH") {
        let (exception, rest) = words.split_first()?;
        *words = rest;
        return Some(allowed.contains(&format!("{name} WITH {exception}").as_str()));
    }
    Some(allowed.contains(name))
}

fn take(words: &mut &[&str], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_is_enough_and_all_of_several_are_needed() {
        let met = |expression| is_met(expression, &["MIT", "ISC"]);
        assert!(met("MIT") && met("GPL-3.0 OR MIT") && met("MIT/GPL-3.0"));
        assert!(met("MIT AND ISC") && met("(GPL-3.0 OR MIT) AND ISC"));
        assert!(!met("GPL-3.0") && !met("MIT AND GPL-3.0") && !met("(MIT OR ISC) AND GPL-3.0"));
    }

    #[test]
    fn and_binds_closer_than_or() {
        assert!(is_met("MIT OR ISC AND GPL-3.0", &["MIT"]));
        assert!(!is_met("GPL-3.0 OR ISC AND MIT", &["MIT"]));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        let expression = "Apache-2.0 WITH LLVM-exception";
        assert!(!is_met(expression, &["Apache-2.0"]));
        assert!(is_met(expression, &["Apache-2.0 WITH LLVM-exception"]));
    }

    #[test]
    fn an_expression_that_cannot_be_parsed_is_not_met() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "MIT MIT", "AND"] {
            assert!(!is_met(broken, &["MIT"]), "{broken}");
        }
    }
}
