"""A random network, the file that describes it, and the exact shares of its flows. Nothing here is taken from the engine."""
import collections
import itertools
import random
from fractions import Fraction

Flow = collections.namedtuple("Flow", "name source target weight path")
Link = collections.namedtuple("Link", "a b rate latency")
MSS, WIRE = 1448, 1538  # of a full segment with timestamps, on Ethernet
ACK = Fraction(90, 2 * WIRE)  # one without data for every two full segments
KINDS = ("apart", "both", "same")  # what pairs of nodes have: one flow, one each way, any number
SILENT, AFTER, LASTS = 6, 5, 12  # seconds: before the first byte, until it is counted, for how long it is


class Network:
    """A tree of routers with nodes at random ones, so that each pair of nodes has one way."""

    def __init__(self, name):
        kind, _, seed = name.partition("-")
        draw = random.Random(seed)
        count = draw.randint(6, 20)
        routers = draw.randint(3, 6)
        nodes = draw.randint(5, 9)
        self.routers = [f"r{at}" for at in range(routers)]
        self.nodes = [f"n{at}" for at in range(nodes)]
        self.links = [Link(f"r{at}", f"r{draw.randrange(at)}", draw.choice([10, 16, 25]), draw.randint(2, 10))
                      for at in range(1, routers)]
        self.links += [Link(node, draw.choice(self.routers), draw.choice([8, 12, 20]), draw.randint(1, 5)) for node in self.nodes]
        self.sharing = draw.choice(["rtt-aware", "equal"])
        pairs = self.pairs(kind, draw, count)
        self.flows = [self.flow(f"f{at}", *pair) for at, pair in enumerate(pairs)]
        self.machine = {node: draw.random() for node in self.nodes}

    def pairs(self, kind, draw, count):
        """Who sends to whom."""
        if kind == "same":
            return [draw.sample(self.nodes, 2) for _ in range(count)]
        apart = list(itertools.combinations(self.nodes, 2))
        found = [draw.sample(pair, 2) for pair in draw.sample(apart, min(count, len(apart)))]
        return found if kind == "apart" else [way for pair in found[: (count + 1) // 2] for way in (pair, pair[::-1])]

    def flow(self, name, source, target):
        lanes = self.way(source, target)
        latency = {(link.a, link.b): link.latency for link in self.links}
        one_way = sum(latency.get(lane) or latency[lane[::-1]] for lane in lanes)
        return Flow(name, source, target, Fraction(1, 2 * one_way) if self.sharing == "rtt-aware" else Fraction(1), lanes)

    def way(self, source, target):
        """The directed links from one node to another."""
        beside = collections.defaultdict(list)
        for link in self.links:
            beside[link.a].append(link.b)
            beside[link.b].append(link.a)
        ways, ahead = {source: []}, [source]
        for here in ahead:
            for there in beside[here]:
                if there not in ways:
                    ways[there] = [*ways[here], (here, there)]
                    ahead.append(there)
        return ways[target]

    def shares(self, taken=None):
        """Mbit/s of the wire of each flow: weighted max-min by progressive filling, in rational numbers.

        All flows grow in proportion to their weights until a link is full; those over it keep what they have. `taken` is what
        something else takes of each direction of a link.
        """
        room = {lane: Fraction(link.rate) for link in self.links for lane in ((link.a, link.b), (link.b, link.a))}
        for lane, rate in (taken or {}).items():
            room[lane] -= rate
        share, growing = {}, {flow.name: flow for flow in self.flows}
        while growing:
            load = collections.Counter()
            for flow in growing.values():
                for lane in flow.path:
                    load[lane] += flow.weight
            level = min(room[lane] / weight for lane, weight in load.items())
            full = {lane for lane, weight in load.items() if room[lane] / weight == level}
            for flow in [flow for flow in growing.values() if full & set(flow.path)]:
                share[flow.name] = level * flow.weight
                del growing[flow.name]
                for lane in flow.path:
                    room[lane] -= share[flow.name]
        return share

    def beside_acknowledgements(self):
        """The shares where links have the acknowledgements of all flows to carry, too: these follow from the shares, so twice."""
        return self.shares(self.acknowledgements(self.shares(self.acknowledgements(self.shares()))))

    def acknowledgements(self, share):
        """What they take of each direction of a link, where flows have these shares."""
        taken = collections.Counter()
        for flow in self.flows:
            for a, b in flow.path:
                taken[b, a] += ACK * share[flow.name]
        return taken

    def full(self):
        """The directions of links that the shares fill, each with the pairs of nodes that have flows there."""
        share = self.shares()
        room = {lane: Fraction(link.rate) for link in self.links for lane in ((link.a, link.b), (link.b, link.a))}
        crossing = {lane: [flow for flow in self.flows if lane in flow.path] for lane in room}
        return {lane: {(flow.source, flow.target) for flow in flows} for lane, flows in crossing.items()
                if sum(share[flow.name] for flow in flows) == room[lane]}

    def expected(self, shares):
        """Mbit/s of payload of each pair of nodes, and the names of its flows: these share a queue, in which TCP divides."""
        of = {}
        for flow in self.flows:
            rate, names = of.get((flow.source, flow.target), (0, []))
            of[flow.source, flow.target] = (rate + float(shares[flow.name] * MSS / WIRE), [*names, flow.name])
        return of

    def scenario(self, machines, program):
        """The file; on several machines each node has its place, so that it is known which flows meet others' ones."""
        counted = AFTER + LASTS + 1
        lines = ["ipv6: false", "model: paths", f"sharing: {self.sharing}", f"duration: {SILENT + counted + 3}s", "defaults: {node: {user: root}, link: {queue: 50p}}", "nodes:"]
        ranked = sorted(self.nodes, key=self.machine.get)
        for node in self.nodes:
            pin = f", pin: m{ranked.index(node) % machines}" if machines > 1 else ""
            into = sum(flow.target == node for flow in self.flows)
            programs = [f"{{run: python3 {program} receive 5000 {into} {counted}}}"] if into else []
            programs += [f"{{run: python3 {program} send {flow.target} 5000 {flow.name}, start: {SILENT}s}}"
                         for flow in self.flows if flow.source == node]
            lines.append(f"  {node}: {{run: [{', '.join(programs)}], daemon: true{pin}}}" if programs else f"  {node}: {{{pin[2:]}}}")
        lines += [f"routers: [{', '.join(self.routers)}]", "links:"]
        lines += [f"  - {{between: [{link.a}, {link.b}], rate: {link.rate}mbit, latency: {link.latency}ms}}" for link in self.links]
        return "\n".join(lines) + "\n"
