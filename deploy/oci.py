#!/usr/bin/env python3
"""A container image without a container engine: an OCI layout (image-spec v1.1) in a tar ball.

    deploy/oci.py --dockerfile FILE --tag NAME:VERSION --machine x86_64 --out FILE LAYER.tar [LAYER.tar ...]
    deploy/oci.py --packages FILE       the Debian packages that the last stage of a Dockerfile installs
    deploy/oci.py --release FILE        the Debian release of its base image
    deploy/oci.py --set-up FILE         its other commands, for a shell in the new root

User, working folder, entry point and command are those of the Dockerfile's last stage, so that one file says
what the image is, whichever tool makes it. Layers are packed with gzip; nothing has the time of day in it.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile
from pathlib import Path

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def last_stage(path: str) -> list[tuple[str, str]]:
    """The instructions of the last stage: names and words."""
    lines = [line for line in Path(path).read_text().splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    stage: list[tuple[str, str]] = []
    for line in filter(str.strip, joined.splitlines()):
        name, words = line.split(None, 1)
        stage = [(name, words)] if name == "FROM" else [*stage, (name, words.strip())]
    return stage


def packages(stage: list[tuple[str, str]]) -> list[str]:
    """What apt-get installs."""
    runs = [words for name, words in stage if name == "RUN" and "apt-get install" in words]
    words = [word for run in runs for word in run.split("install -y", 1)[1].split("&&")[0].split()]
    return [word for word in words if not word.startswith("-")]


def release(stage: list[tuple[str, str]]) -> str:
    """`bookworm` of `debian:bookworm-slim`."""
    found = re.search(r"debian:([a-z]+)", dict(stage)["FROM"])
    if not found:
        sys.exit("error: the last stage is not based on Debian")
    return found[1]


def set_up(stage: list[tuple[str, str]]) -> str:
    """The commands of RUN that install no packages."""
    return " && ".join(words for name, words in stage if name == "RUN" and "apt-get" not in words)


def image_config(stage: list[tuple[str, str]]) -> dict[str, object]:
    """What a container is started with."""
    said = dict(stage)
    config: dict[str, object] = {
        "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
        "WorkingDir": said["WORKDIR"],
        "Entrypoint": json.loads(said["ENTRYPOINT"]),
        "Cmd": json.loads(said["CMD"]),
    }
    if "USER" in said:
        config["User"] = said["USER"]
    if "EXPOSE" in said:
        config["ExposedPorts"] = {said["EXPOSE"]: {}}
    return config


class Blobs:
    """Files of a layout by their digests."""

    def __init__(self, out: tarfile.TarFile) -> None:
        self.out = out

    def file(self, name: str, data: bytes) -> None:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(data), 0o644
        self.out.addfile(member, io.BytesIO(data))

    def add(self, data: bytes, media_type: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        self.file(f"blobs/sha256/{digest}", data)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}

    def json(self, value: object, media_type: str) -> dict[str, object]:
        return self.add(json.dumps(value, sort_keys=True).encode(), media_type)


def write(arguments: argparse.Namespace) -> None:
    stage = last_stage(arguments.dockerfile)
    aside = f"{arguments.out}.new"
    kind = "application/vnd.oci.image"
    with tarfile.open(aside, "w") as out:
        blobs = Blobs(out)
        blobs.file("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        layers, plain = [], []
        for path in arguments.layers:
            data = Path(path).read_bytes()
            plain.append("sha256:" + hashlib.sha256(data).hexdigest())
            layers.append(blobs.add(gzip.compress(data, 6, mtime=0), f"{kind}.layer.v1.tar+gzip"))
        config = {
            "architecture": ARCHITECTURES[arguments.machine],
            "os": "linux",
            "config": image_config(stage),
            "rootfs": {"type": "layers", "diff_ids": plain},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": blobs.json(config, f"{kind}.config.v1+json"),
            "layers": layers,
        }
        entry = blobs.json(manifest, f"{kind}.manifest.v1+json")
        entry["annotations"] = {"org.opencontainers.image.ref.name": arguments.tag}
        index = {"schemaVersion": 2, "mediaType": f"{kind}.index.v1+json", "manifests": [entry]}
        blobs.file("index.json", json.dumps(index).encode())
    os.replace(aside, arguments.out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", metavar="DOCKERFILE")
    parser.add_argument("--release", metavar="DOCKERFILE")
    parser.add_argument("--set-up", metavar="DOCKERFILE")
    parser.add_argument("--dockerfile")
    parser.add_argument("--tag")
    parser.add_argument("--machine", choices=sorted(ARCHITECTURES))
    parser.add_argument("--out")
    parser.add_argument("layers", nargs="*")
    arguments = parser.parse_args()
    if arguments.packages:
        print(",".join(packages(last_stage(arguments.packages))))
    elif arguments.release:
        print(release(last_stage(arguments.release)))
    elif arguments.set_up:
        print(set_up(last_stage(arguments.set_up)))
    elif arguments.dockerfile and arguments.tag and arguments.machine and arguments.out and arguments.layers:
        write(arguments)
    else:
        parser.error("--packages, --release, --set-up, or all of --dockerfile, --tag, --machine, --out and layers")


if __name__ == "__main__":
    main()
