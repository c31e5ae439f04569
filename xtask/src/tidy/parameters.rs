//! Parameters of functions: each has a name. A tuple pattern in their place hides how many there are,
//! and leaves values that belong together without a type.

use super::rust::code_of;

/// Finds parameters that are tuple patterns, of functions and methods, also of tests. Closures may
/// have them.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    let lines: Vec<String> = text.lines().map(code_of).collect();
    let code = lines.join("\n");
    for (at, _) in code.match_indices(KEYWORD) {
        let before = &code[..at];
        if before.ends_with(is_word) {
            continue;
        }
        let Some((function, list)) = head(&code[at + KEYWORD.len()..]) else { continue };
        if parameters(list).into_iter().any(is_tuple_pattern) {
            let line = before.matches('\n').count() + 1;
            faults.push(format!(
                "{name}:{line}: a parameter of `{function}` is a tuple pattern: name each value, or \
                 give them a type"
            ));
        }
    }
}

/// What stands before a function's name. In the type of a pointer to one, no blank follows `fn`.
const KEYWORD: &str = "fn ";

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A function's name and the list of its parameters, of the code behind `fn`.
fn head(code: &str) -> Option<(&str, &str)> {
    let (name, mut rest) = code.split_at(code.find(|c| !is_word(c))?);
    if rest.starts_with('<') {
        rest = &rest[bracketed(rest)?..];
    }
    let list = rest.strip_prefix('(')?;
    Some((name, &list[..bracketed(rest)? - 2]))
}

/// The parameters in a list, without the commas between them.
fn parameters(list: &str) -> Vec<&str> {
    let (mut parameters, mut begin) = (Vec::new(), 0);
    for (at, _, _) in depths(list).filter(|(_, c, depth)| *c == ',' && *depth == 0) {
        parameters.push(&list[begin..at]);
        begin = at + 1;
    }
    parameters.push(&list[begin..]);
    parameters
}

/// Whether a parameter is a tuple pattern with a type. (What `proptest!` draws has `in` instead.)
fn is_tuple_pattern(parameter: &str) -> bool {
    let mut rest = parameter.trim_start();
    while let Some(attribute) = rest.strip_prefix('#') {
        let Some(length) = bracketed(attribute) else { return false };
        rest = attribute[length..].trim_start();
    }
    let rest = rest.trim_start_matches('&').trim_start_matches("mut ");
    rest.starts_with('(')
        && bracketed(rest).is_some_and(|length| rest[length..].trim_start().starts_with(':'))
}

/// The length of the brackets that begin here, with what is in them.
pub(super) fn bracketed(code: &str) -> Option<usize> {
    depths(code).find(|(_, _, depth)| *depth == 0).map(|(at, c, _)| at + c.len_utf8())
}

/// Where each character is, and in how many brackets the code is behind it.
fn depths(code: &str) -> impl Iterator<Item = (usize, char, i32)> {
    let (mut depth, mut previous) = (0, ' ');
    code.char_indices().map(move |(at, c)| {
        match c {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            // The end of an arrow is none of a bracket.
            '>' if previous != '-' && previous != '=' => depth -= 1,
            _ => {}
        }
        previous = c;
        (at, c, depth)
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::faults_of;
    use super::*;

    #[test]
    fn tuple_patterns_are_found_with_file_line_and_function() {
        let text = "struct A;\n\nimpl A {\n    fn b(&self, (c, d): (u8, u8)) {}\n}\n";
        let expected = "crates/x/src/a.rs:4: a parameter of `b` is a tuple pattern: \
                        name each value, or give them a type";
        assert_eq!(faults_of(check, "crates/x/src/a.rs", text), [expected]);
    }

    #[test]
    fn tuple_patterns_are_found_wherever_they_stand_in_a_head() {
        for head in [
            "fn f((a, b): Pair)",
            "pub(crate) async fn f(\n    mut a: u8,\n    (b, c): (u8, u8),\n) -> u8",
            "fn f<T: Fn(u8) -> Vec<u8>>(a: T, (b, c): (u8, u8))",
            "fn f(a: [u8; 2], &(b, c): &(u8, u8))",
            "fn f(a: u8, &mut (b, c): &mut (u8, u8))",
            "fn f(#[expect(unused)] (b, c): (u8, u8))",
            "unsafe extern \"C\" fn f(((a, b), c): Nested)",
        ] {
            assert_eq!(
                faults_of(check, "crates/x/tests/a.rs", &format!("{head} {{}}\n")).len(),
                1,
                "{head}"
            );
        }
    }

    #[test]
    fn names_with_tuples_as_types_and_patterns_elsewhere_are_fine() {
        for code in [
            "fn f(&mut self, a: (u8, u8), b: &[(u8, u8)]) -> (u8, u8) {}",
            "fn f(a: impl Fn((u8, u8), u8) -> u8, b: fn((u8, u8)) -> u8) {}",
            "fn f<A>() {\n    let g = |(a, b): (u8, u8), c: u8| a + b + c;\n}",
            "fn f(a: u8) {\n    let (b, c): (u8, u8) = (a, a);\n}",
            "// fn f((a, b): Pair) {}\nlet text = \"fn f((a, b): Pair) {}\";",
            "fn f((a, b) in pairs(), c in 0..9) {}",
            "let a: fn((u8, u8)) = g;",
        ] {
            assert_eq!(faults_of(check, "crates/x/src/a.rs", code), [] as [&str; 0], "{code}");
        }
    }
}
