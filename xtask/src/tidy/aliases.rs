//! Aliases of types: a second name hides what a value is, and takes part in nothing that a type does.
//! One with parameters may stand, where it abbreviates what is generic anyway.

use super::rust::{code_of, is_test, production};
use super::types::without_visibility;

/// Finds aliases without parameters at module level, but for those of tests.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    if is_test(name) {
        return;
    }
    for (index, line) in production(text).into_iter().enumerate() {
        if let Some(alias) = alias(&code_of(line)) {
            faults.push(format!(
                "{name}:{}: `{alias}` is an alias: write its type out, or make it a type",
                index + 1
            ));
        }
    }
}

/// The alias without parameters that a line at module level declares.
fn alias(line: &str) -> Option<&str> {
    let rest = without_visibility(line)?.strip_prefix("type ")?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (alias, rest) = rest.split_at(end);
    (!rest.starts_with('<')).then_some(alias)
}

#[cfg(test)]
mod tests {
    use super::super::testing::faults_of;
    use super::*;

    #[test]
    fn aliases_are_found_whatever_their_visibility() {
        let text = "use x;\n\npub(crate) type Pair = (u8, u8);\ntype Long =\n    Vec<u8>;\n";
        let said = |line: u32, alias: &str| {
            format!(
                "crates/a/src/x.rs:{line}: `{alias}` is an alias: write its type out, or make it a \
                 type"
            )
        };
        assert_eq!(faults_of(check, "crates/a/src/x.rs", text), [said(3, "Pair"), said(4, "Long")]);
    }

    #[test]
    fn those_with_parameters_of_traits_and_of_tests_are_fine() {
        let text = "type Sink<'a> = &'a mut dyn FnMut(u8);\npub type Map<T> = BTreeMap<u8, T>;\n\
                    impl A for B {\n    type Err = String;\n}\n// type A = B;\n\
                    #[cfg(test)]\nmod tests {\n}\ntype A = u8;\n";
        assert!(faults_of(check, "crates/a/src/x.rs", text).is_empty());
        assert!(faults_of(check, "crates/a/tests/x.rs", "type A = u8;\n").is_empty());
    }
}
