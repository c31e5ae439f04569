"""The kinds of provocation, by what they disturb."""

from . import disk, events, images, limits, machines, nodes, outside, processor, records, services, stops, translation

ALL = {kind.__name__.replace("_", "-"): kind
       for part in (processor, stops, events, limits, nodes, services, outside, disk, machines, images, records, translation)
       for kind in part.KINDS}
