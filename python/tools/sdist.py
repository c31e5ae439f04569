#!/usr/bin/env python3
"""Whether a source distribution has all that its build reads.

    tools/sdist.py SDIST TARGET

TARGET is the target folder of a build of this repository: cargo has noted there which files the
compiler and the build scripts have read. Each that is of the repository must be in SDIST, the same.
"""

from __future__ import annotations

import re
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def main(sdist: str, target: str) -> int:
    with tarfile.open(sdist) as archive:
        there = {
            member.name.split("/", 1)[1]: archive.extractfile(member).read()  # type: ignore[union-attr]
            for member in archive.getmembers()
            if member.isfile()
        }
    read = sorted(files(Path(target)))
    faults = [it for it in read if there.get(it) != (ROOT / it).read_bytes()]
    for fault in faults:
        print(f"{sdist} lacks {fault}, or has another one", file=sys.stderr)
    print(f"{len(read)} files are read, {len(read) - len(faults)} of them are there")
    return 1 if faults or not read else 0


def files(target: Path) -> set[str]:
    """Files of the repository that were read, by their paths in it."""
    found: set[Path] = set()
    for note in target.glob("release/**/*.d"):
        for word in re.split(r"(?<!\\)\s+", note.read_text().strip()):
            path = Path(word.rstrip(":").replace("\\ ", " "))
            place = path if path.is_absolute() else ROOT / path
            # Cargo's environment variables are noted, too.
            if word.startswith("#") or place == ROOT or not place.exists():
                continue
            if place.is_relative_to(ROOT) and not place.is_relative_to(target):
                resolved = place.resolve()
                inside = resolved.rglob("*") if resolved.is_dir() else [resolved]
                found.update(it for it in inside if it.is_file())
    return {str(it.relative_to(ROOT)) for it in found}


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
