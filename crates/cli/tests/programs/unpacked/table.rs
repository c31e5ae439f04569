//! The table of images.

use super::layer::{Entry, device, file, folder, gone, hard, link, pipe};

/// An image.
pub(super) struct Case {
    /// The names of its node and of its folder.
    pub(super) name: &'static str,
    /// Its layers, the lowest first.
    pub(super) layers: fn() -> Vec<Vec<Entry>>,
    /// What it says of its program; empty: nothing, and none is run of it.
    pub(super) config: &'static str,
    /// What is done to its manifest.
    pub(super) damage: fn(&mut serde_json::Value),
}

const fn case(name: &'static str, layers: fn() -> Vec<Vec<Entry>>) -> Case {
    Case { name, layers, config: "", damage: |_| () }
}

const fn configured(name: &'static str, config: &'static str) -> Case {
    let layers = || {
        vec![vec![
            file("etc/passwd", "root:x:0:0::/root:/bin/sh\nredis:x:999:1000::/data:/bin/sh\n"),
            file(
                "etc/group",
                "root:x:0:\nadm:x:4:redis,root\nwheel:x:10:root\ncd:x:24:redis\nweb:x:33:\n",
            ),
        ]]
    };
    Case { name, layers, config, damage: |_| () }
}

const fn damaged(name: &'static str, damage: fn(&mut serde_json::Value)) -> Case {
    Case { name, layers: || vec![vec![file("a", "1")]], config: "", damage }
}

/// Images of which a node has what the other tool unpacks.
pub(super) const SEEN: &[Case] = &[
    case("plain", || vec![vec![file("a", "1"), file("b/c/d", "2").mode(0o600)]]),
    case("no-layers", || vec![vec![]]),
    case("empty-layers", || vec![vec![file("a", "1")], vec![], vec![]]),
    case("same-layer-twice", || vec![vec![file("a", "1")], vec![gone("a")], vec![file("a", "1")]]),
    case("root-mode", || vec![vec![folder("./", 0o555), file("a", "1")]]),
    case("root-mode-below", || vec![vec![folder("./", 0o711).owner(33)], vec![file("a", "1")]]),
    case("root-mode-above", || vec![vec![folder("./", 0o711)], vec![folder("./", 0o755)]]),
    case("parent-mode", || {
        vec![vec![folder("d", 0o700), folder("d/e", 0o1777)], vec![file("d/e/f", "1")]]
    }),
    case("parent-of-three", || {
        vec![vec![folder("d", 0o750)], vec![file("d/a", "1")], vec![file("d/b", "2")]]
    }),
    case("parent-owner", || {
        vec![vec![folder("d", 0o2770).owner(33)], vec![file("d/f", "1").owner(7)]]
    }),
    case("parent-time", || {
        vec![vec![folder("d", 0o755).time(500_000_000)], vec![file("d/f", "1")]]
    }),
    case("parent-again", || {
        vec![vec![folder("d", 0o700)], vec![file("d/f", "1"), folder("d", 0o751)]]
    }),
    case("parent-late", || vec![vec![file("d/f", "1"), folder("d", 0o710).time(77)]]),
    case("gone-file", || vec![vec![file("d/a", "1"), file("d/b", "2")], vec![gone("d/a")]]),
    case("gone-folder", || vec![vec![folder("d", 0o700), file("d/a", "1")], vec![gone("d")]]),
    case("gone-and-new", || {
        vec![vec![folder("d", 0o700), file("d/a", "1")], vec![gone("d")], vec![file("d/b", "2")]]
    }),
    case("gone-nothing", || vec![vec![folder("d", 0o755)], vec![gone("d/x"), gone("x")]]),
    case("gone-in-own", || vec![vec![file("a", "old")], vec![gone("a"), file("a", "new")]]),
    case("opaque", || {
        vec![
            vec![folder("d", 0o755), file("d/a", "1")],
            vec![folder("d", 0o711), file("d/.wh..wh..opq", ""), file("d/b", "2")],
        ]
    }),
    case("opaque-implied", || {
        vec![
            vec![folder("d", 0o711), file("d/a", "1")],
            vec![file("d/.wh..wh..opq", ""), file("d/b", "2")],
        ]
    }),
    case("opaque-deep", || {
        vec![vec![file("d/e/a", "1")], vec![file("d/.wh..wh..opq", "")], vec![file("d/e/b", "2")]]
    }),
    case("file-for-folder", || vec![vec![file("d/a", "1")], vec![file("d", "a file")]]),
    case("folder-for-file", || {
        vec![vec![file("d", "a file")], vec![folder("d", 0o755), file("d/a", "1")]]
    }),
    case("link-for-folder", || {
        vec![vec![file("d/a", "1"), file("e/b", "2")], vec![link("d", "e")]]
    }),
    case("folder-for-link", || {
        vec![vec![file("e/b", "2"), link("d", "e")], vec![folder("d", 0o700), file("d/a", "1")]]
    }),
    case("through-link", || {
        vec![vec![folder("usr/lib", 0o755), link("lib", "usr/lib")], vec![file("lib/x.so", "1")]]
    }),
    case("through-absolute", || {
        vec![vec![folder("srv/data", 0o750), link("data", "/srv/data")], vec![file("data/x", "1")]]
    }),
    case("through-parent", || {
        vec![
            vec![folder("a/b", 0o755), folder("c", 0o755), link("a/b/l", "../../c")],
            vec![file("a/b/l/x", "1")],
        ]
    }),
    case("through-two", || {
        vec![vec![folder("e", 0o755), link("c", "d"), link("d", "e")], vec![file("c/x", "1")]]
    }),
    case("gone-through-link", || {
        vec![vec![file("usr/lib/x", "1"), link("lib", "usr/lib")], vec![gone("lib/x")]]
    }),
    case("link-outward", || {
        vec![vec![link("up", "../../.."), file("up/x", "1"), link("passwd", "/etc/passwd")]]
    }),
    case("hard-link", || vec![vec![file("a", "1").mode(0o4755), hard("b", "a"), hard("c/d", "b")]]),
    case("hard-link-below", || {
        vec![vec![file("d/a", "1").mode(0o640).owner(33)], vec![hard("b", "d/a")]]
    }),
    case("hard-link-absolute", || vec![vec![file("d/a", "1"), hard("b", "/d/a")]]),
    case("hard-link-to-link", || vec![vec![link("l", "nowhere"), hard("m", "l")]]),
    case("set-user", || {
        vec![vec![file("su", "#!").mode(0o4755), file("wall", "#!").mode(0o2755).owner(5)]]
    }),
    case("fifo", || vec![vec![pipe("run/pipe").mode(0o620)]]),
    case("old-times", || {
        vec![vec![file("a", "1").time(0), file("b", "2").time(1), folder("d", 0o755).time(2)]]
    }),
    case("later-times", || vec![vec![file("a", "1").record("mtime", "1234567890.5")]]),
    case("names", || {
        vec![vec![file("a b", "1"), file("ä\\n", "2"), file(".wh", "3"), file("...", "4")]]
    }),
    case("long-name", || {
        vec![vec![
        file("short", "1").record("path", concat!("d/", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789", "/x")),
        link("l", "t").record("linkpath", "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"),
    ]]
    }),
    case("sparse-0", || {
        vec![vec![
            file("a", "12345678")
                .record("GNU.sparse.size", "5000000")
                .record("GNU.sparse.numblocks", "2")
                .record("GNU.sparse.offset", "4096")
                .record("GNU.sparse.numbytes", "4")
                .record("GNU.sparse.offset", "999999")
                .record("GNU.sparse.numbytes", "4"),
        ]]
    }),
    case("sparse-0-1", || {
        vec![vec![
            file("GNUSparseFile.1/a", "12345678")
                .record("GNU.sparse.size", "5000000")
                .record("GNU.sparse.name", "a")
                .record("GNU.sparse.numblocks", "2")
                .record("GNU.sparse.map", "4096,4,999999,4"),
        ]]
    }),
    case("sparse-1", || {
        vec![vec![
            file("GNUSparseFile.1/a", &format!("{:\0<512}12345678", "2\n4096\n4\n999999\n4\n"))
                .record("GNU.sparse.major", "1")
                .record("GNU.sparse.minor", "0")
                .record("GNU.sparse.name", "a")
                .record("GNU.sparse.realsize", "5000000"),
        ]]
    }),
    case("many-layers", || {
        let mut layers = vec![vec![folder("d", 0o1777)]];
        layers.extend((1..130).map(|number| vec![file(&format!("d/{number}"), "x")]));
        layers
    }),
    configured(
        "command",
        r#"{"Entrypoint": ["/probe/busybox", "sh", "/probe/say"], "Cmd": ["a", "b c", ""], "Env": ["A=1", "PATH=/x:/y", "E=", "T=a=b"]}"#,
    ),
    configured("named-user", r#"{"User": "redis", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#),
    configured("number", r#"{"User": "999", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#),
    configured(
        "named-group",
        r#"{"User": "redis:web", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#,
    ),
    configured("numbers", r#"{"User": "7:8", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#),
    configured("unknown", r#"{"User": "1234", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#),
    configured("root-groups", r#"{"Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#),
    configured(
        "new-folder",
        r#"{"WorkingDir": "/not/there/yet", "Cmd": ["/probe/busybox", "sh", "/probe/say"]}"#,
    ),
];

/// Images that must not get what they want, and what is said of each.
pub(super) const HOSTILE: &[(Case, &str)] = &[
    (
        case("up", || vec![vec![file("../beside", "!")]]),
        "`../beside` leads out of its folder by `..`",
    ),
    (
        case("up-deep", || vec![vec![file("a/../../../beside", "!")]]),
        "leads out of its folder by `..`",
    ),
    (case("absolute", || vec![vec![file("/etc/x", "!")]]), "`/etc/x` is an absolute path"),
    (case("device", || vec![vec![device("disk")]]), "`disk` is a device node"),
    (
        case("hard-out", || vec![vec![hard("x", "../../beside")]]),
        "which leads out of its folder by `..`",
    ),
    (
        case("hard-nowhere", || vec![vec![hard("x", "etc/shadow")]]),
        "which neither this layer nor one below it has",
    ),
    (
        case("circle", || vec![vec![link("a", "b"), link("b", "a"), file("a/x", "!")]]),
        "Too many levels of symbolic links",
    ),
    (case("below-file", || vec![vec![file("a", "1")], vec![file("a/b", "!")]]), "Not a directory"),
    (case("whiteout-up", || vec![vec![file("a/.wh...", "")]]), "a/.wh..."),
    (
        case("sparse-lie", || {
            vec![vec![
                file("a", "12").record("GNU.sparse.map", "0,2,1,0").record("GNU.sparse.size", "9"),
            ]]
        }),
        "parts do not follow each other",
    ),
    (
        damaged("longer", |manifest| manifest["layers"][0]["size"] = 1.into()),
        "with 1 bytes, and it has 2048",
    ),
    (
        damaged("shorter", |manifest| manifest["layers"][0]["size"] = 9_999_999.into()),
        "with 9999999 bytes, and it has 2048",
    ),
];
