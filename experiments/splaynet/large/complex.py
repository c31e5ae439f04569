#!/usr/bin/env python3
"""The network of complex.yaml, and the shares that max-min gives its streams.

complex.py            writes complex.yaml anew
"""
import random
from pathlib import Path

PAIRS, REGIONS, LEAVES = 75, 6, 24
ACCESS, REGIONAL, BACKBONE = 2, 4, 8  # Mbit/s


def links():
    """Names of both ends, and Mbit/s: a ring of regions, leaf routers below them, and the hosts of 75 pairs."""
    found = [(f"region-{at}", f"region-{(at + 1) % REGIONS}", BACKBONE) for at in range(REGIONS)]
    found += [(f"leaf-{at}", f"region-{at % REGIONS}", REGIONAL) for at in range(LEAVES)]
    generator = random.Random(3)
    for pair in range(PAIRS):
        for side in ("s", "r"):
            found.append((f"{side}{pair}", f"leaf-{generator.randrange(LEAVES)}", ACCESS))
    return found


def path(source, target, all_links):
    """The directed links of the shortest way; of two equal ones, as windtunnel, that over the first link."""
    ways, open_, seen = {source: []}, [source], {source}
    while open_:
        following = []
        for at in open_:
            for a, b, _ in all_links:
                for here, there in ((a, b), (b, a)):
                    if here == at and there not in seen:
                        seen.add(there)
                        ways[there] = ways[at] + [(here, there)]
                        following.append(there)
        open_ = following
    return ways[target]


def shares():
    """Mbit/s of the wire for each stream: progressive filling."""
    all_links = links()
    room = {ends: rate for a, b, rate in all_links for ends in ((a, b), (b, a))}
    ways = {pair: path(f"s{pair}", f"r{pair}", all_links) for pair in range(PAIRS)}
    share, left = {}, dict(ways)
    while left:
        users = {}
        for pair, way in left.items():
            for lane in way:
                users.setdefault(lane, []).append(pair)
        tight = min(users, key=lambda lane: room[lane] / len(users[lane]))
        fair = room[tight] / len(users[tight])
        for pair in users[tight]:
            share[pair] = fair
            for lane in left.pop(pair):
                room[lane] -= fair
    return share


def scenario():
    lines = [
        "# SplayNet 3.4.4, a complex topology: 150 nodes, 30 routers, 75 streams at once. With `sharing: equal` each gets its max-min share,",
        "# which complex.py computes. Written by complex.py; needs python3.",
        "ipv6: false", "model: paths", "sharing: equal", "placement: spread", "duration: 60s",
        "defaults: {node: {user: root}, link: {latency: 2ms, queue: 100p}}",
        "nodes:",
    ]
    for pair in range(PAIRS):
        lines.append(f"  r{pair}: {{run: python3 ../traffic.py sink 5000 1, daemon: true, ready: tcp:5000}}")
        lines.append(f"  s{pair}: {{run: python3 ../traffic.py stream r{pair} 5000 400000000, after: r{pair}, start: 8s, daemon: true}}")
    routers = [f"region-{at}" for at in range(REGIONS)] + [f"leaf-{at}" for at in range(LEAVES)]
    lines += [f"routers: [{', '.join(routers)}]", "links:"]
    lines += [f"  - {{between: [{a}, {b}], rate: {rate}mbit}}" for a, b, rate in links()]
    lines.append("expect:")
    for pair in range(PAIRS):
        lines.append(f"  - {{path: [s{pair}, r{pair}], between: [15s, 40s], throughput: {{mean: {{min: 10kbit}}}}}}")
    return "\n".join(lines).replace("duration: 60s", "duration: 42s") + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("complex.yaml").write_text(scenario())
