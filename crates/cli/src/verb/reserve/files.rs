//! The parts of a run as folders and files: which there are, what they hold, and what a text that is
//! written into one asks for.

use windtunnel_control::{ControlRequest, ReservationStatus, TypedRequest};

use crate::failure::VerbFailure;
use crate::render::quantity;

/// What there is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReservationFileEntry {
    /// The top, a node or a reservation.
    Folder,
    File {
        text: String,
        writable: bool,
    },
}

/// A file of each part.
struct ReservationFile {
    name: &'static str,
    content: fn(&ReservationStatus) -> Option<String>,
    is_writable: bool,
}

const fn file(
    name: &'static str,
    content: fn(&ReservationStatus) -> Option<String>,
    is_writable: bool,
) -> ReservationFile {
    ReservationFile { name, content, is_writable }
}

const FILES: [ReservationFile; 16] = [
    file("cpu.min", |part| Some(quantity::processors(part.cpu_min_millis)), true),
    file("cpu.weight", |part| Some(part.cpu_weight.to_string()), true),
    file(
        "cpu.share",
        |part| part.cpu_share_millis.map(|it| quantity::processors(it.into())),
        false,
    ),
    file("cpu.limit", |part| part.limits.asked.cpu_millis.map(quantity::processors), true),
    file("cpu.used", |part| part.limits.used.cpu_millis.map(quantity::processors), false),
    file("memory.min", |part| Some(part.memory_min.to_string()), false),
    file("memory.limit", |part| part.limits.asked.memory.map(|it| it.to_string()), true),
    file("memory.used", |part| part.limits.used.memory.map(|it| it.to_string()), false),
    file("pids.limit", |part| part.limits.asked.pids.map(|it| it.to_string()), true),
    file("pids.used", |part| part.limits.used.pids.map(|it| it.to_string()), false),
    file("send.rate", |part| part.sending?.rate_bit_per_s.map(|it| it.to_string()), false),
    file("send.used", |part| Some(part.sending?.used_bit_per_s.to_string()), false),
    file("send.backlog", |part| Some(part.sending?.backlog_bytes.to_string()), false),
    file("send.dropped", |part| Some(part.sending?.dropped_packets.to_string()), false),
    file("disk.limit", |part| part.limits.asked.disk.map(|it| it.to_string()), true),
    file("disk.used", |part| part.limits.used.disk.map(|it| it.to_string()), false),
];

/// At the top: why the last text that was written was refused.
pub(super) const REFUSED: &str = "refused";

/// What is at a path without a slash in front; `None`: nothing.
pub(super) fn entry(
    parts: &[ReservationStatus],
    path: &str,
    refused: &str,
) -> Option<ReservationFileEntry> {
    if path == REFUSED {
        return Some(ReservationFileEntry::File { text: refused.to_owned(), writable: false });
    }
    if path.is_empty() || part(parts, path).is_some() {
        return Some(ReservationFileEntry::Folder);
    }
    let (folder, name) = path.rsplit_once('/')?;
    let part = part(parts, folder)?;
    let file = FILES.into_iter().find(|file| file.name == name)?;
    let text = format!("{}\n", (file.content)(part).as_deref().unwrap_or("-"));
    Some(ReservationFileEntry::File { text, writable: file.is_writable })
}

/// The names in the folder at a path, with whether each is a folder.
pub(super) fn names(parts: &[ReservationStatus], path: &str) -> Vec<(String, bool)> {
    let inside = (!path.is_empty()).then(|| name_of(path));
    let within = parts.iter().filter(|part| part.parent.as_deref() == inside);
    let folders = within.map(|part| (part.name.clone(), true));
    let files: Vec<&str> = match inside {
        None => vec![REFUSED],
        Some(_) => FILES.into_iter().map(|file| file.name).collect(),
    };
    folders.chain(files.into_iter().map(|name| (name.to_owned(), false))).collect()
}

/// What a text asks for that is written into the file at a path.
pub(super) fn request(path: &str, text: &str) -> Result<TypedRequest<()>, VerbFailure> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let text = text.trim();
    let (key, value) = match file {
        "cpu.min" => ("cpu", format!("{{min: {text}}}")),
        "cpu.weight" => ("cpu", format!("{{weight: {text}}}")),
        _ => (file.split('.').next().unwrap_or_default(), text.to_owned()),
    };
    let malformed = || {
        let message = format!("`{}` is no value for {file}", windtunnel_model::valid::shown(text));
        VerbFailure::new(crate::exit::ExitCategory::Usage, message)
    };
    // One value, and nothing that would be read as several.
    if text.is_empty() || text.contains(['{', '}', ',', ':', '\n']) {
        return Err(malformed());
    }
    let demand = windtunnel_scenario::parse_limit(key, &value)?;
    ControlRequest::live_limit(name_of(folder), &demand).ok_or_else(malformed)
}

/// The part at a path, in which each name is in the folder of the part around it.
fn part<'a>(parts: &'a [ReservationStatus], path: &str) -> Option<&'a ReservationStatus> {
    let mut around: Option<&ReservationStatus> = None;
    for name in path.split('/') {
        let parent = around.map(|part| part.name.as_str());
        let is_there =
            |part: &&ReservationStatus| part.name == name && part.parent.as_deref() == parent;
        around = Some(parts.iter().find(is_there)?);
    }
    around
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use windtunnel_model::demand::Demand;

    use super::*;

    fn parts() -> Vec<ReservationStatus> {
        let site = ReservationStatus {
            name: "site".into(),
            cpu_min_millis: 500,
            ..ReservationStatus::default()
        };
        let parent = Some("site".to_owned());
        vec![
            site,
            ReservationStatus {
                name: "db".into(),
                node: true,
                parent,
                ..ReservationStatus::default()
            },
        ]
    }

    #[test]
    fn parts_are_folders_in_the_part_around_them_with_a_file_for_each_value() {
        let parts = parts();
        let at = |path: &str| entry(&parts, path, "too much\n");
        assert_eq!(
            (at(""), at("site"), at("site/db")),
            (Some(ReservationFileEntry::Folder), at(""), at(""))
        );
        assert_eq!(
            (at("db"), at("site/site"), at("site/db/x"), at("x/y")),
            (None, None, None, None)
        );
        let text = |path: &str| match at(path) {
            Some(ReservationFileEntry::File { text, .. }) => text,
            other => panic!("{path}: {other:?}"),
        };
        assert_eq!(text("site/cpu.min"), "0.5\n");
        assert_eq!(
            (text("site/db/memory.used"), text("refused")),
            ("-\n".into(), "too much\n".into())
        );
        let top = [("site".to_owned(), true), ("refused".to_owned(), false)];
        assert_eq!(names(&parts, ""), top);
        assert_eq!(names(&parts, "site")[0], ("db".to_owned(), true));
        assert_eq!(names(&parts, "site/db").len(), FILES.len());
    }

    #[test]
    fn a_text_asks_for_one_value_of_its_part() {
        let asked = |path: &str, text: &str| request(path, text).unwrap().message().clone();
        let nothing = Demand::default();
        for (path, text, demand) in [
            ("site/db/cpu.min", "50%\n", Demand { cpu_min_millis: Some(500), ..nothing }),
            ("site/db/cpu.weight", "3", Demand { cpu_weight: Some(3), ..nothing }),
            ("site/db/cpu.limit", " 1.5\n", Demand { cpu_millis: Some(1500), ..nothing }),
        ] {
            assert_eq!(asked(path, text), ControlRequest::Limit { who: "db".into(), demand });
        }
        for (path, text) in [
            ("db/cpu.min", ""),
            ("db/cpu.min", "1, weight: 9"),
            ("db/cpu.limit", "fast"),
            ("db/memory.limit", "-1"),
            ("db/cpu.used", "{min: 1}"),
        ] {
            assert!(request(path, text).is_err(), "{path} {text}");
        }
    }
}
