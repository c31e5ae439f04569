//! Rust sources: sizes, `unsafe`, `unwrap`.

/// Production lines of a file at the most.
const FILE_LINES_MAX: usize = 600;
/// Lines of a function at the most, its head and end included.
const FUNCTION_LINES_MAX: usize = 70;

/// Checks one source file.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    if is_test(name) {
        return;
    }
    let lines = production(text);
    if lines.len() > FILE_LINES_MAX {
        faults.push(format!("{name}: {} production lines, at most {FILE_LINES_MAX}", lines.len()));
    }
    functions(name, &lines, faults);
    for (index, line) in lines.iter().enumerate() {
        let code = code_of(line);
        let mut fault = |what: &str| faults.push(format!("{name}:{}: {what}", index + 1));
        if has_word(&code, &["un", "safe"].concat()) && !has_unsafe(name) {
            fault("unsafe outside of crates/sys and crates/shim");
        }
        if code.contains(&[".unw", "rap()"].concat()) {
            fault("unwrap outside of tests");
        }
    }
}

/// Whether a file is of a room that may have it: the one that calls Linux, and the library that is
/// loaded into programs.
fn has_unsafe(name: &str) -> bool {
    name.starts_with("crates/sys/") || name.starts_with("crates/shim/")
}

/// Whether a file holds tests only.
pub(super) fn is_test(name: &str) -> bool {
    name.contains("/tests/")
        || name.contains("/benches/")
        || name.contains("/examples/")
        || name.ends_with("/tests.rs")
        || name.ends_with("/testing.rs")
        || name.starts_with("fuzz/")
}

/// The lines before the test module, which is the last thing in a file.
pub(super) fn production(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| {
        pair[0] == "#[cfg(test)]"
            && pair[1].trim_start_matches("pub(crate) ").starts_with("mod ")
            && pair[1].ends_with('{')
    });
    match tests {
        Some(start) => lines[..start].to_vec(),
        None => lines,
    }
}

fn functions(name: &str, lines: &[&str], faults: &mut Vec<String>) {
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        if !is_function(code) {
            continue;
        }
        let indent = &line[..line.len() - code.len()];
        let end = format!("{indent}}}");
        // rustfmt puts the end of a function below its head; one-liners end where they begin.
        let length = lines[start..].iter().position(|line| *line == end || line.ends_with(" {}"));
        let length = length.map_or(0, |last| last + 1);
        let declared = lines[start..].iter().take(length.max(1)).any(|line| line.ends_with(");"))
            && !lines[start..].iter().take(length.max(1)).any(|line| line.ends_with('{'));
        if length > FUNCTION_LINES_MAX && !declared {
            let most = FUNCTION_LINES_MAX;
            faults.push(format!(
                "{name}:{}: a function of {length} lines, at most {most}",
                start + 1
            ));
        }
    }
}

pub(super) fn is_function(code: &str) -> bool {
    let words = code.split_whitespace().take_while(|word| {
        ["pub", "const", "async", "extern", "fn", "unsafe"].contains(word)
            || word.starts_with("pub(")
            || word.starts_with('"')
    });
    words.last() == Some("fn") && !code.ends_with(';')
}

/// A line without its comment and without texts in quotes.
pub(super) fn code_of(line: &str) -> String {
    let mut code = String::new();
    let (mut quoted, mut previous) = (false, ' ');
    for c in line.chars() {
        if c == '"' && previous != '\\' {
            quoted = !quoted;
        } else if !quoted {
            code.push(c);
        }
        previous = c;
        if code.ends_with("//") {
            code.truncate(code.len() - 2);
            return code;
        }
    }
    code
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

#[cfg(test)]
mod tests {
    use super::super::testing;
    use super::*;

    fn faults_of(text: &str) -> Vec<String> {
        testing::faults_of(check, "crates/x/src/a.rs", text)
    }

    #[test]
    fn long_functions_are_found_and_those_of_the_bound_are_not() {
        let function = |lines: usize| format!("fn f() {{\n{}}}\n", "    x();\n".repeat(lines - 2));
        assert!(faults_of(&function(70)).is_empty());
        assert_eq!(
            faults_of(&function(71)),
            ["crates/x/src/a.rs:1: a function of 71 lines, at most 70"]
        );
    }

    #[test]
    fn words_in_texts_comments_and_tests_do_not_count() {
        assert!(
            faults_of("// unsafe\nlet x = \"unsafe\";\n#[cfg(test)]\nmod tests {\nx.unwrap()\n")
                .is_empty()
        );
        assert_eq!(faults_of("let x = y.unwrap();\nunsafe { z() }\n").len(), 2);
    }
}
