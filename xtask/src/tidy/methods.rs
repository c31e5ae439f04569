//! Methods of a type, over all of its files: one that has many does several things, in however many
//! files these are.

use std::collections::BTreeMap;

use super::parameters::bracketed;
use super::rust::{code_of, is_function, is_test, production};

/// Methods of a type at the most. Those of traits do not count.
const METHODS_MAX: usize = 40;

/// The methods of each type, by room and name of the type.
#[derive(Debug, Default)]
pub(super) struct MethodCounts(BTreeMap<(String, String), TypeMethods>);

#[derive(Debug, Default)]
struct TypeMethods {
    count: usize,
    /// Where its implementations begin.
    places: Vec<String>,
}

impl MethodCounts {
    /// Counts what the inherent implementations of a source file hold.
    pub(super) fn add(&mut self, name: &str, text: &str) {
        let room = name.split("/src/").next().unwrap_or(name);
        if room == name || is_test(name) {
            return;
        }
        let mut current = None;
        let lines = production(text);
        for (index, line) in lines.iter().enumerate() {
            if line.starts_with("impl") {
                current = inherent(&head(&lines[index..])).map(|of| (room.to_owned(), of));
                if let Some(key) = &current {
                    let methods = self.0.entry(key.clone()).or_default();
                    methods.places.push(format!("{name}:{}", index + 1));
                }
            } else if line.starts_with('}') {
                current = None;
            }
            let method = line.strip_prefix("    ").filter(|rest| !rest.starts_with(' '));
            if let Some(key) = &current
                && method.is_some_and(is_function)
            {
                self.0.entry(key.clone()).or_default().count += 1;
            }
        }
    }

    /// Finds types with too many.
    pub(super) fn check(&self, faults: &mut Vec<String>) {
        for ((_, of), methods) in self.0.iter().filter(|(_, it)| it.count > METHODS_MAX) {
            let (first, others) = (&methods.places[0], methods.places[1..].join(", "));
            let also = if others.is_empty() { others } else { format!(" (also in {others})") };
            let count = methods.count;
            faults
                .push(format!("{first}: `{of}` has {count} methods, at most {METHODS_MAX}{also}"));
        }
    }
}

/// What stands before the brace of an implementation that begins here, in one line.
fn head(lines: &[&str]) -> String {
    let mut head = String::new();
    for line in lines {
        let code = code_of(line);
        let end = code.find('{');
        head.push_str(code[..end.unwrap_or(code.len())].trim());
        head.push(' ');
        if end.is_some() {
            break;
        }
    }
    head
}

/// The name of the type of an implementation that is not one of a trait.
fn inherent(head: &str) -> Option<String> {
    let rest = head.strip_prefix("impl")?;
    let rest = if rest.starts_with('<') { &rest[bracketed(rest)?..] } else { rest };
    let rest = rest.split(" where ").next().unwrap_or(rest).trim();
    if rest.contains(" for ") {
        return None;
    }
    let path = rest.split('<').next().unwrap_or(rest);
    let name = path.rsplit("::").next().unwrap_or(path);
    Some(name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(files: &[(&str, &str)]) -> Vec<String> {
        let (mut counts, mut faults) = (MethodCounts::default(), Vec::new());
        files.iter().for_each(|(name, text)| counts.add(name, text));
        counts.check(&mut faults);
        faults
    }

    fn block(head: &str, methods: usize) -> String {
        format!("{head} {{\n{}}}\n", "    pub(crate) async fn f(&self) {}\n".repeat(methods))
    }

    #[test]
    fn methods_of_a_type_count_over_all_its_files() {
        let (one, other) =
            (block("impl<'a, T: Fn(u8) -> u8> Core<'a, T>", 20), block("impl Core", 20));
        let third = block("\nimpl<T>\n    super::Core<'_, T>\nwhere\n    T: Sized,", 1);
        let two = [("crates/a/src/x.rs", one.as_str()), ("crates/a/src/y.rs", &other)];
        assert!(faults(&two).is_empty());
        let said = "crates/a/src/x.rs:1: `Core` has 41 methods, at most 40 (also in \
                    crates/a/src/y.rs:1, crates/a/src/z.rs:2)";
        assert_eq!(faults(&[two[0], two[1], ("crates/a/src/z.rs", &third)]), [said]);
    }

    #[test]
    fn those_of_traits_tests_other_rooms_and_nested_functions_do_not() {
        let inner = format!(
            "impl Core {{\n    fn f() {{\n{}    }}\n}}\n",
            "        fn g() {}\n".repeat(41)
        );
        let one = block("impl Core", 40) + &block("impl From<u8> for Core", 9) + &inner[..0];
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}", block("impl Core", 9));
        let found = faults(&[
            ("crates/a/src/x.rs", &(one + &tests)),
            ("crates/a/src/x/tests.rs", &block("impl Core", 9)),
            ("crates/b/src/x.rs", &block("impl Core", 9)),
            ("crates/c/src/x.rs", &inner),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }
}
