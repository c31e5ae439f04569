//! Words: messages, events and processes have the usual technical terms, in texts and in names.

use std::ops::Range;

/// Words for which a technical term exists (reports, prints, receives, no process and so on).
const WORDS: [&str; 10] =
    ["told", "tell", "tells", "telling", "teller", "hears", "heard", "hear", "nobody", "whoever"];

/// The same of several words, also across the end of a line.
const PHRASES: [&[&str]; 2] = [&["by", "chance"], &["for", "want", "of"]];

/// Files that are read.
const KINDS: [&str; 4] = [".rs", ".md", ".py", ".sh"];

/// Records of the past, generated pages, and this file.
const EXEMPT: [&str; 6] = [
    "CHANGELOG.md",
    "docs/decisions/",
    "docs/reference/",
    "docs/man/",
    "docs/completions/",
    "xtask/src/tidy/words.rs",
];

/// Finds [`WORDS`] and [`PHRASES`] in a file's text, and in the parts of its `snake_case` names.
pub(super) fn check(name: &str, text: &str, faults: &mut Vec<String>) {
    let is_read = KINDS.iter().any(|kind| name.ends_with(kind));
    if !is_read || EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
        return;
    }
    let words: Vec<(usize, String)> = text
        .lines()
        .enumerate()
        .flat_map(|(index, line)| words_of(line).map(move |word| (index + 1, word)))
        .collect();
    for (at, (line, word)) in words.iter().enumerate() {
        let begins = |phrase: &&&[&str]| {
            let rest = words[at..].iter().map(|(_, word)| word.as_str());
            rest.take(phrase.len()).eq(phrase.iter().copied())
        };
        let found = match PHRASES.iter().find(begins) {
            Some(phrase) => phrase.join(" "),
            None if WORDS.contains(&word.as_str()) => word.clone(),
            None => continue,
        };
        faults.push(format!("{name}:{line}: `{found}`: use the technical term"));
    }
}

/// The words of a line in lower case, without the system's user `nobody`.
fn words_of(line: &str) -> impl Iterator<Item = String> {
    let spans = spans(line).into_iter().filter(|span| !is_user(line, span));
    spans.map(|span| line[span].to_lowercase())
}

/// Runs of letters and digits, as places in the line.
fn spans(line: &str) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    for (at, c) in line.char_indices().filter(|(_, c)| c.is_alphanumeric()) {
        let end = at + c.len_utf8();
        match spans.last_mut().filter(|span| span.end == at) {
            Some(span) => span.end = end,
            None => spans.push(at..end),
        }
    }
    spans
}

/// Whether a word is a constant `NOBODY`, or stands alone between backticks or quotes.
fn is_user(line: &str, span: &Range<usize>) -> bool {
    let word = &line[span.clone()];
    let (before, after) = (line[..span.start].chars().last(), line[span.end..].chars().next());
    let is_quoted = before == after && before.is_some_and(|mark| "`'\"".contains(mark));
    word == "NOBODY" || word == "nobody" && is_quoted
}

#[cfg(test)]
mod tests {
    use super::super::testing::faults_of;
    use super::*;

    #[test]
    fn words_are_found_in_texts_and_in_parts_of_names_with_their_line() {
        assert_eq!(
            faults_of(check, "a.md", "fine\nTell it.\n"),
            ["a.md:2: `tell`: use the technical term"]
        );
        for text in ["fn a_run_is_told() {}", "let told = 1;", "// (hears)", "last_heard", "TELLER"]
        {
            assert_eq!(faults_of(check, "a.rs", text).len(), 1, "{text}");
        }
        assert_eq!(faults_of(check, "a.py", "told = tell(heard)\n").len(), 3);
    }

    #[test]
    fn words_that_contain_one_are_others() {
        for text in
            ["intelligent satellite", "sheared", "foretold", "storyteller", "want of chance"]
        {
            assert_eq!(faults_of(check, "a.sh", text), [] as [&str; 0]);
        }
    }

    #[test]
    fn phrases_are_found_across_lines_and_comment_marks() {
        let text = "// lost by\n// chance, for want\n// of room\n";
        let found = ["by chance", "for want of"];
        let expected = [1, 2]
            .map(|line| format!("a.rs:{line}: `{}`: use the technical term", found[line - 1]));
        assert_eq!(faults_of(check, "a.rs", text), expected);
    }

    #[test]
    fn the_user_of_the_system_keeps_its_name() {
        let user = "const NOBODY: u32 = 65534; // `nobody`, \"nobody\", 'nobody'\n";
        assert_eq!(faults_of(check, "a.rs", user), [] as [&str; 0]);
        for text in ["nobody", "Nobody waits", "`nobody waits`", "(nobody)", "\"tell\"", "nobodys"]
        {
            assert_eq!(
                faults_of(check, "a.rs", text).len(),
                usize::from(text != "nobodys"),
                "{text}"
            );
        }
    }

    #[test]
    fn records_generated_pages_and_other_kinds_of_files_are_exempt() {
        for name in ["CHANGELOG.md", "docs/decisions/1.md", "docs/reference/file.md", "a.yaml"] {
            assert_eq!(faults_of(check, name, "tell\n"), [] as [&str; 0], "{name}");
        }
        assert_eq!(faults_of(check, "docs/cluster.md", "tell\n").len(), 1);
    }
}
