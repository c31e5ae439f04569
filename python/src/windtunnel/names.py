"""Names of what a network has: texts that know what they are of."""

from __future__ import annotations


class NodeName(str):
    """The name of a node or of a group of nodes."""

    __slots__ = ()


class RouterName(str):
    """The name of a router."""

    __slots__ = ()


class LanName(str):
    """The name of a LAN."""

    __slots__ = ()


class LinkName(str):
    """The name of a link."""

    __slots__ = ()


class ServiceName(str):
    """The name of a service."""

    __slots__ = ()
