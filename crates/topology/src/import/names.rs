//! Names that a scenario accepts, from labels that people wrote for other purposes.

use std::collections::BTreeSet;

/// Room is left behind a name for `-host-10000`.
const LONGEST: usize = 40;

/// Gives each label a name of its own.
#[derive(Debug, Default)]
pub(super) struct UniqueNameAllocator {
    taken: BTreeSet<String>,
}

impl UniqueNameAllocator {
    /// A name for `label`: lower-case letters, digits and `-`; a number behind it where it is
    /// taken. `kind` stands in front of a label without letters.
    pub(super) fn take(&mut self, label: &str, kind: &str) -> String {
        let base = host_name(label, kind);
        let numbered = (2_u64..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        // There are more numbers than names are taken.
        let free = names.find(|name| !self.taken.contains(name)).unwrap_or(base);
        self.taken.insert(free.clone());
        free
    }

    /// A name for a group: none of its members' names may be taken either.
    pub(super) fn take_group(&mut self, label: &str, kind: &str, count: u32) -> String {
        let base = host_name(label, kind);
        let numbered = (2_u64..).map(|number| format!("{base}-{number}"));
        let mut names = std::iter::once(base.clone()).chain(numbered);
        let is_free = |name: &String| {
            !self.taken.contains(name)
                && (1..=count).all(|member| !self.taken.contains(&format!("{name}-{member}")))
        };
        let free = names.find(is_free).unwrap_or(base);
        self.taken.extend((1..=count).map(|member| format!("{free}-{member}")));
        self.taken.insert(free.clone());
        free
    }
}

/// The label, where the name does not show it.
pub(super) fn comment(label: &str, name: &str) -> Option<String> {
    let label = label.trim();
    (label != name && !label.is_empty()).then(|| shown(label))
}

/// A label as it is shown in comments and lists.
pub(super) fn shown(label: &str) -> String {
    format!("\"{}\"", super::input::shorten(label.trim()))
}

/// A name for an experiment: it becomes part of a folder's name.
pub(super) fn experiment(label: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "-_.+".contains(c) { c } else { '-' };
    let name: String = label.trim().chars().take(60).map(plain).collect();
    let name = name.trim_start_matches(['.', '-']).to_owned();
    // A character may have up to four bytes, and the name a hundred.
    match name.char_indices().find(|(at, c)| at + c.len_utf8() > 100) {
        Some((at, _)) => name[..at].to_owned(),
        None if name.is_empty() => "imported".to_owned(),
        None => name,
    }
}

fn host_name(label: &str, kind: &str) -> String {
    let ascii = deunicode::deunicode(&label.chars().take(200).collect::<String>());
    let mut name = String::new();
    for c in ascii.to_ascii_lowercase().chars() {
        match c {
            'a'..='z' | '0'..='9' => name.push(c),
            _ if name.ends_with('-') || name.is_empty() => {}
            _ => name.push('-'),
        }
        if name.len() >= LONGEST {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    match name {
        "" => kind.to_owned(),
        "localhost" => format!("{kind}-{name}"),
        name if name.bytes().all(|byte| byte.is_ascii_digit()) => format!("{kind}-{name}"),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_become_host_names() {
        let cases = [
            ("Göteborg", "goteborg"),
            ("São Paulo (SP)", "sao-paulo-sp"),
            ("MIX    ", "mix"),
            ("FLR/SOX", "flr-sox"),
            ("Łódź", "lodz"),
            ("12", "pop-12"),
            ("?", "pop"),
            ("", "pop"),
            ("localhost", "pop-localhost"),
        ];
        for (label, name) in cases {
            assert_eq!(UniqueNameAllocator::default().take(label, "pop"), name, "{label}");
        }
    }

    #[test]
    fn equal_labels_get_numbers_and_groups_keep_room_for_their_members() {
        let mut namer = UniqueNameAllocator::default();
        assert_eq!(namer.take("GEANT", "pop"), "geant");
        assert_eq!(namer.take("Geant", "pop"), "geant-2");
        assert_eq!(namer.take("geant-2", "pop"), "geant-2-2");
        assert_eq!(namer.take("c-2", "pop"), "c-2");
        assert_eq!(namer.take_group("c", "pop", 3), "c-3");
        assert_eq!(namer.take("c-3-3", "pop"), "c-3-3-2");
    }

    #[test]
    fn experiments_are_named_so_that_folders_can_be() {
        assert_eq!(experiment("../Belnet 2010?"), "Belnet-2010-");
        assert_eq!(experiment("--"), "imported");
        assert!(experiment(&"ü".repeat(200)).len() <= 100);
    }
}
