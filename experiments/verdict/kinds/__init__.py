"""The kinds of provocation, by what they disturb."""

from . import disk, events, limits, machines, nodes, outside, processor, services, stops

ALL = {kind.__name__.replace("_", "-"): kind
       for part in (processor, stops, events, limits, nodes, services, outside, disk, machines)
       for kind in part.KINDS}
