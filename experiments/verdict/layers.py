"""Images with random layers, and what their files must be: layers as OCI describes them, by a model that is not windtunnel's."""

import gzip
import hashlib
import io
import json
import shutil
import tarfile

# The folder of an image that layers change; the programs are beside it.
TREE = "t"
LISTING = ("busybox find /t -exec busybox stat -c '%n|%f|%u|%g|%s' {} +; busybox find /t -type f -exec busybox md5sum {} +; "
           "busybox find /t -type l -exec busybox readlink {} ';'")


def entry(name, kind, mode=0o755, owner=0, content=b"", link=""):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.uid, info.gid, info.size, info.linkname, info.mtime = kind, mode, owner, owner, len(content), link, 10**9
    return info, content


def base():
    """A layer with a static busybox and nothing else."""
    with open(shutil.which("busybox"), "rb") as program:
        busybox = program.read()
    return [entry("bin", tarfile.DIRTYPE), entry("bin/busybox", tarfile.REGTYPE, content=busybox), entry("bin/sh", tarfile.SYMTYPE, link="busybox"),
            entry(TREE, tarfile.DIRTYPE)]


def tar(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


class Layers:
    """Layers that grow at random, and the tree that they make: path → (file type, mode, owner, content or target)."""

    def __init__(self, chance):
        self.chance, self.tree, self.layers = chance, {TREE: ("d", 0o755, 0, "")}, [base()]

    def paths(self, kinds="d"):
        return [path for path, (kind, *_) in self.tree.items() if kind in kinds]

    def removed(self, path):
        self.tree = {name: what for name, what in self.tree.items() if name != path and not name.startswith(path + "/")}

    def grow(self):
        """One more layer, with what it does to those below it first, so that the model may do the same."""
        below, entries, chance = dict(self.tree), [], self.chance
        for path in chance.sample(sorted(below), min(len(below), chance.randrange(3))):
            if path == TREE or path not in self.tree:
                continue
            folder, name = path.rsplit("/", 1)
            if below[path][0] == "d" and chance.random() < 0.4:
                entries.append(entry(f"{path}/.wh..wh..opq", tarfile.REGTYPE, 0o644))
                self.removed_children(path)
            else:
                entries.append(entry(f"{folder}/.wh.{name}", tarfile.REGTYPE, 0o644))
                self.removed(path)
        mine = set()
        for _ in range(chance.randrange(1, 8)):
            parent = chance.choice(self.paths())
            path = f"{parent}/{chance.choice('abcdef')}"
            if path in mine or any(other.startswith(path + "/") for other in mine):
                continue
            mine.add(path)
            entries.append(self.added(path, mine))
        self.layers.append(entries)

    def removed_children(self, path):
        what = self.tree[path]
        self.removed(path)
        self.tree[path] = what

    def added(self, path, mine):
        chance, old = self.chance, self.tree.get(path)
        mode, owner, kind = chance.choice([0o700, 0o755, 0o644, 0o1777, 0o2755, 0o4711]), chance.choice([0, 1, 999]), chance.choice("dddfffflh")
        files = [name for name in self.paths("f") if name != path and not name.startswith(path + "/") and name in mine]
        if kind == "h" and not files:
            kind = "f"
        if kind != "d" or old and old[0] != "d":
            self.removed(path)
        if kind == "d":
            self.tree[path] = ("d", mode, owner, "")
            return entry(path, tarfile.DIRTYPE, mode, owner)
        if kind == "l":
            self.tree[path] = ("l", 0o777, owner, f"to/{owner}")
            return entry(path, tarfile.SYMTYPE, 0o777, owner, link=f"to/{owner}")
        if kind == "h":
            target = chance.choice(files)
            self.tree[path] = self.tree[target]
            return entry(path, tarfile.LNKTYPE, mode, owner, link=target)
        content = chance.randbytes(chance.choice([0, 1, 600, 5000]))
        self.tree[path] = ("f", mode, owner, hashlib.md5(content).hexdigest())
        return entry(path, tarfile.REGTYPE, mode, owner, content)

    def seen(self):
        """What a listing in a node must say, as `read` has it."""
        return {"/" + path: (kind, mode if kind != "l" else None, owner, text) for path, (kind, mode, owner, text) in self.tree.items()}


def read(text):
    """The tree of a listing of LISTING, which names all, then the sums of files and the targets of links in the same order."""
    lines, tree = text.splitlines(), {}
    sums = [line for line in lines if "|" not in line]
    links = []
    for line in lines:
        if "|" in line:
            path, mode, user, group, _size = line.split("|")
            bits, kind = int(mode, 16), {4: "d", 8: "f", 10: "l"}.get(int(mode, 16) >> 12, "?")
            tree[path] = (kind, bits & 0o7777 if kind != "l" else None, int(user) if user == group else -1, "")
            if kind == "l":
                links.append(path)
    for line in sums:
        if line.startswith("to/"):
            path, text = links.pop(0), line
        else:
            text, path = line.split("  ", 1)
        tree[path] = (*tree[path][:3], text)
    return tree


def write(folder, layers, command, spoil=None):
    """An OCI layout with these layers; `spoil(blobs, manifest, config)` may change what is written."""
    folder.mkdir()
    blobs = folder / "blobs/sha256"
    blobs.mkdir(parents=True)

    def blob(data, name=None):
        digest = name or hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data)}

    tars = [tar(entries) for entries in layers]
    config = {"architecture": "amd64", "os": "linux", "config": {"Cmd": ["/bin/sh", "-c", command], "Env": ["PATH=/bin"]},
              "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}" for data in tars]}}
    packed = [gzip.compress(data, 1) for data in tars]
    manifest = {"schemaVersion": 2, "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", **blob(data)} for data in packed]}
    if spoil:
        spoil(blobs, manifest, config)
    manifest["config"] = {"mediaType": "application/vnd.oci.image.config.v1+json", **blob(json.dumps(config).encode())}
    described = {"mediaType": "application/vnd.oci.image.manifest.v1+json", **blob(json.dumps(manifest).encode())}
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}))
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
