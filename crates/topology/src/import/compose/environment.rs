//! Files of variables: `.env`, and those of `env_file`. Source: the Compose Specification, "Env_file
//! format".

use std::collections::BTreeMap;

use super::variable::replaced;

/// The variables of a file, in its order; `None`: one without a value, which is the shell's.
///
/// # Errors
/// Which line is none, or lacks a variable that it needs.
pub(super) fn read(
    text: &str,
    shell: &BTreeMap<String, String>,
) -> Result<Vec<(String, Option<String>)>, String> {
    let mut known = shell.clone();
    let mut found = Vec::new();
    let mut rest = text.trim_start_matches('\u{feff}');
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            rest = after;
            continue;
        }
        let trimmed = trimmed.strip_prefix("export ").unwrap_or(trimmed).trim_start();
        let Some((name, _)) = trimmed.split_once('=') else {
            found.push((trimmed.to_owned(), None));
            rest = after;
            continue;
        };
        let name = name.trim().to_owned();
        let value_at = line.find('=').map_or(line.len(), |at| at + 1);
        let (value, left) = value(&rest[value_at..], &known)?;
        rest = left;
        if name.is_empty() {
            return Err("a line without a name before its `=`".to_owned());
        }
        known.entry(name.clone()).or_insert_with(|| value.clone());
        found.push((name, Some(value)));
    }
    Ok(found)
}

/// A value up to the end of its line, or over several in quotes; and the lines after it.
fn value<'t>(text: &'t str, known: &BTreeMap<String, String>) -> Result<(String, &'t str), String> {
    let start = text.trim_start_matches([' ', '\t']);
    let next_line = |from: &'t str| from.split_once('\n').map_or("", |(_, after)| after);
    if let Some(quoted) = start.strip_prefix('\'')
        && let Some((inside, after)) = quoted.split_once('\'')
    {
        return Ok((inside.to_owned(), next_line(after)));
    }
    if let Some(quoted) = start.strip_prefix('"')
        && let Some((inside, after)) = unescaped(quoted)
    {
        return Ok((replaced(&inside, known)?.0, next_line(after)));
    }
    let (line, after) = start.split_once('\n').unwrap_or((start, ""));
    let plain = line.split_once(" #").map_or(line, |(plain, _)| plain);
    Ok((replaced(plain.trim(), known)?.0, after))
}

/// The text up to the closing quote.
fn unescaped(quoted: &str) -> Option<(String, &str)> {
    let mut text = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return Some((text, &quoted[at + 1..])),
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '$' => text.push_str("$$"),
                c @ ('"' | '\\') => text.push(c),
                c => text.extend(['\\', c]),
            },
            c => text.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables_with_quotes_comments_and_values_of_others() {
        let text = "# all\nA=1\nexport B = two words # why\nC='$A # \"'\nD=\"x\\n${A}\\$A\"\n\
                    E=\nSHELL_ONE\nF=\"over\ntwo lines\" # end\nG=${A}${NONE:-d}\n";
        let shell = BTreeMap::from([("A".to_owned(), "shell".to_owned())]);
        let seen = read(text, &shell).unwrap();
        let expected = [
            ("A", Some("1")),
            ("B", Some("two words")),
            ("C", Some("$A # \"")),
            // The shell's value comes before the file's.
            ("D", Some("x\nshell$A")),
            ("E", Some("")),
            ("SHELL_ONE", None),
            ("F", Some("over\ntwo lines")),
            ("G", Some("shelld")),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.map(str::to_owned)));
        assert_eq!(seen, expected);
        assert!(read("=x", &shell).is_err());
    }
}
