//! Layers as tar files, entry by entry.

use tar::{EntryType, Header};

/// An entry of a layer.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    name: Vec<u8>,
    kind: EntryType,
    content: Vec<u8>,
    link: Vec<u8>,
    mode: u32,
    owner: u64,
    time: u64,
    records: Vec<(String, String)>,
}

impl Entry {
    pub(super) fn mode(self, mode: u32) -> Entry {
        Entry { mode, ..self }
    }

    pub(super) fn owner(self, owner: u64) -> Entry {
        Entry { owner, ..self }
    }

    pub(super) fn time(self, time: u64) -> Entry {
        Entry { time, ..self }
    }

    /// With a record of an extended header.
    pub(super) fn record(mut self, key: &str, value: &str) -> Entry {
        self.records.push((key.to_owned(), value.to_owned()));
        self
    }
}

fn entry(name: &str, kind: EntryType) -> Entry {
    Entry {
        name: name.into(),
        kind,
        content: Vec::new(),
        link: Vec::new(),
        mode: 0o644,
        owner: 0,
        time: 1_000_000_000,
        records: Vec::new(),
    }
}

pub(super) fn file(name: &str, content: &str) -> Entry {
    Entry { content: content.into(), ..entry(name, EntryType::Regular) }
}

pub(super) fn folder(name: &str, mode: u32) -> Entry {
    Entry { mode, ..entry(name, EntryType::Directory) }
}

pub(super) fn link(name: &str, target: &str) -> Entry {
    Entry { link: target.into(), mode: 0o777, ..entry(name, EntryType::Symlink) }
}

pub(super) fn hard(name: &str, target: &str) -> Entry {
    Entry { link: target.into(), ..entry(name, EntryType::Link) }
}

pub(super) fn pipe(name: &str) -> Entry {
    entry(name, EntryType::Fifo)
}

pub(super) fn device(name: &str) -> Entry {
    entry(name, EntryType::Block)
}

/// A whiteout, by the name of what it hides.
pub(super) fn gone(path: &str) -> Entry {
    let (folder, name) = path
        .rsplit_once('/')
        .map_or((String::new(), path), |(folder, name)| (format!("{folder}/"), name));
    file(&format!("{folder}.wh.{name}"), "")
}

/// A layer as a tar file, whose names are written as they are.
pub(super) fn tar(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        let records = records(&entry.records);
        if !records.is_empty() {
            write(&mut bytes, &Entry { content: records, ..self::entry("x", EntryType::XHeader) });
        }
        write(&mut bytes, entry);
    }
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn write(bytes: &mut Vec<u8>, entry: &Entry) {
    let mut header = Header::new_ustar();
    let old = header.as_old_mut();
    old.name[..entry.name.len()].copy_from_slice(&entry.name);
    old.linkname[..entry.link.len()].copy_from_slice(&entry.link);
    header.set_entry_type(entry.kind);
    header.set_size(entry.content.len() as u64);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_mode(entry.mode);
    header.set_mtime(entry.time);
    header.set_cksum();
    bytes.extend(header.as_bytes());
    bytes.extend(&entry.content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
}

/// `LENGTH KEY=VALUE` and a newline, where the length counts itself.
fn records(records: &[(String, String)]) -> Vec<u8> {
    let mut text = String::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length = rest + length.to_string().len();
        }
        text += &format!("{length} {key}={value}\n");
    }
    text.into_bytes()
}
