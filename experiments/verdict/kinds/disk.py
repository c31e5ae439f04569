"""The disk of the run folder is full."""

import os
import subprocess
import tempfile

import packets
from trial import Trial, Truth


def full(chance):
    """The file system of the run folder has no room left in the middle of the run: results are missing."""
    size = chance.choice(["200k", "400k", "1m"])
    folder = tempfile.mkdtemp(prefix="wt-verdict-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], check=True)
    try:
        with Trial(packets.network(count=2000, spacing_ns=500_000), "--record=engine,tcp", folder=folder) as trial:
            trial.wait_for_begin()
            # All that is left of it.
            try:
                with open(trial.folder / "filler", "wb", buffering=0) as out:
                    while True:
                        out.write(bytes(4096))
            except OSError:
                pass
            report = trial.finish()
            incomplete = report is not None and (report["verdict"].get("incomplete") or report["verdict"]["unfaithful"])
            # A run that says what is missing has said the truth.
            if incomplete:
                return report, Truth(None, "results are missing, and it is said")
            return report, Truth(True, "results are missing")
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
        os.rmdir(folder)


KINDS = [full]
