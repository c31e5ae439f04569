use super::*;
use crate::testing::{file, other, pax, tar};

fn members(bytes: &[u8]) -> io::Result<Vec<TarEntryHeader>> {
    let mut entries = TarEntryReader::new(bytes);
    let mut found = Vec::new();
    while let Some(member) = entries.next()? {
        found.push(member);
    }
    Ok(found)
}

#[test]
fn records_are_taken_by_their_length_whatever_bytes_are_in_them() {
    // A capability of version 3 for user 10, whose number is a newline.
    let capability = "\u{1}\0\0\u{3}\n\0\0\0\n\0\0\0";
    let records = [
        ("SCHILY.xattr.security.capability", capability),
        ("path", "a/much/longer/name"),
        ("mtime", "-1.25"),
        ("uid", "3000000"),
        ("linkpath", "x"),
        ("linkpath", ""),
    ];
    let mut bytes = pax(&records);
    bytes.extend(tar(&[file("short", b"content"), file("next", b"")]));
    let found = members(&bytes).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].name, b"a/much/longer/name");
    let (name, value) = &found[0].extended[0];
    assert_eq!((name.as_str(), &value[..]), ("security.capability", capability.as_bytes()));
    assert_eq!(found[0].modified, UnixTimestamp { seconds: -2, nanoseconds: 750_000_000 });
    assert_eq!((found[0].uid, found[0].size), (3_000_000, 7));
    assert!(found[0].link.is_empty(), "an empty value takes it back");
    assert_eq!((&found[1].name[..], found[1].uid), (&b"next"[..], 0), "of one entry only");
}

#[test]
fn links_and_folders_have_no_data_whatever_size_they_name() {
    let mut link = other("link", EntryType::Link, "file");
    link.content = vec![0; 512];
    let mut bytes = tar(&[link]);
    // The size stays in the header; the block is not there.
    bytes.drain(512..1024);
    let rest = bytes.split_off(512);
    bytes.extend(tar(&[file("file", b"1")]));
    bytes.extend(rest);
    let names: Vec<_> = members(&bytes).unwrap().into_iter().map(|member| member.name).collect();
    assert_eq!(names, [b"link".to_vec(), b"file".to_vec()]);
}

#[test]
fn global_headers_are_passed_over_and_names_that_end_with_a_slash_were_folders_once() {
    let old = other("d/", EntryType::Regular, "");
    let global = other("pax_global_header", EntryType::XGlobalHeader, "");
    let mut bytes = tar(&[global, old]);
    let mut header = Header::new_old();
    header.as_mut_bytes().copy_from_slice(&bytes[512..1024]);
    header.as_mut_bytes()[KIND_AT] = 0;
    header.set_cksum();
    bytes[512..1024].copy_from_slice(header.as_bytes());
    let found = members(&bytes).unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((&found[0].name[..], found[0].kind), (&b"d/"[..], EntryType::Directory));
}

#[test]
fn headers_are_bounded_and_checked() {
    let mut long = other("x", EntryType::XHeader, "");
    long.content = vec![b'0'; (1 << 20) + 1];
    let text = |bytes: &[u8]| members(bytes).unwrap_err().to_string();
    assert_eq!(text(&tar(&[long])), "it has a header of 1048577 bytes, which may have 1 MiB");
    let mut wrong = tar(&[file("a", b"")]);
    wrong[0] = b'b';
    assert_eq!(text(&wrong), "it has a header whose sum is another one than it says");
    let whole = tar(&[file("a", &[7; 5000])]);
    assert_eq!(text(&whole[..3000]), "it ends too early");
    assert_eq!(text(&whole[..300]), "it ends too early");
    let mut malformed = other("x", EntryType::XHeader, "");
    malformed.content = b"9 path=a\n".to_vec();
    assert_eq!(members(&tar(&[malformed.clone(), file("b", b"")])).unwrap()[0].name, b"a");
    malformed.content = b"99 path=a\n".to_vec();
    assert_eq!(text(&tar(&[malformed, file("b", b"")])), "it has a malformed extended header");
}
