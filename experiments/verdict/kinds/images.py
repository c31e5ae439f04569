"""Images: the files that a node sees, beside what a model of OCI's layers has, and images that are damaged."""

import time

import layers
from trial import Trial, Truth

SCENARIO = """
ipv6: false
nodes:
  a: {image: FOLDER/image}
  b: {image: FOLDER/image}
links: [{between: [a, b], latency: 1ms}]
"""


def trial_of(made, spoil=None):
    trial = Trial(SCENARIO)
    trial.environment["WINDTUNNEL_IMAGE_CACHE"] = str(trial.folder / "cache")
    layers.write(trial.folder / "image", made.layers, layers.LISTING, spoil)
    return trial


def grown(chance):
    made = layers.Layers(chance)
    for _ in range(chance.randrange(2, 8)):
        made.grow()
    return made


def compared(trial, made, report):
    """Whether both nodes saw the tree. A node that failed, or an image that is refused, is judged by that as well."""
    report = {"verdict": {"faithful": True, "exit_code": 0, "warnings": [], "text": report["verdict"]["text"] if report else trial.said()}}
    wrong = []
    for name in "ab":
        output = trial.run / "nodes" / name / "stdout"
        seen, right = layers.read(output.read_text() if output.exists() else ""), made.seen()
        wrong += [f"{name}:{path} is {seen.get(path)}, not {right.get(path)}" for path in seen.keys() | right.keys() if seen.get(path) != right.get(path)]
    return report, Truth(bool(wrong), f"{len(made.tree)} files of {len(made.layers)} layers" + "".join(f"; {one}" for one in sorted(wrong)[:3]))


def tree(chance):
    """Random layers with whiteouts, opaque folders, links and attributes: two nodes see the tree that OCI describes."""
    made = grown(chance)
    with trial_of(made) as trial:
        return compared(trial, made, finished(trial))


def interrupted(chance):
    """A first run is killed while it unpacks the layers; the second sees all of them."""
    made = grown(chance)
    made.layers.insert(1, [layers.entry(f"bin/f{n}", b"0", content=bytes(200_000)) for n in range(100)])
    trial = trial_of(made)
    trial.kept = True
    with trial:
        time.sleep(chance.uniform(0.05, 0.5))
        trial.process.kill()
        trial.process.wait()
    with trial.again():
        return compared(trial, made, finished(trial))


def finished(trial):
    """What the run said; of one that was refused, None."""
    try:
        return trial.finish()
    except SystemExit:
        return None


def flipped(chance):
    """A byte of a layer's blob is another one."""

    def spoil(blobs, manifest, _config):
        blob = blobs / chance.choice(manifest["layers"])["digest"].removeprefix("sha256:")
        data = bytearray(blob.read_bytes())
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        blob.write_bytes(data)

    return refused(chance, spoil)


def cut(chance):
    """A blob ends early."""

    def spoil(blobs, manifest, _config):
        blob = blobs / chance.choice(manifest["layers"])["digest"].removeprefix("sha256:")
        data = blob.read_bytes()
        blob.write_bytes(data[:chance.randrange(len(data))])

    return refused(chance, spoil)


def exchanged(chance):
    """The configuration names the content of another layer."""

    def spoil(_blobs, _manifest, config):
        names = config["rootfs"]["diff_ids"]
        names[0], names[-1] = names[-1], names[0]

    return refused(chance, spoil)


def refused(chance, spoil):
    made = grown(chance)
    with trial_of(made, spoil) as trial:
        return finished(trial), Truth(True, "the image is damaged")


KINDS = [tree, interrupted, flipped, cut, exchanged]
for one in KINDS:
    one.__name__ = f"image_{one.__name__}"
