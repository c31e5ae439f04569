"""What a live run answers: the messages of its control socket, as they are."""

from __future__ import annotations

from typing import Any, TypedDict


class ProgramStatus(TypedDict, total=False):
    """The state of a program: `waiting`, `absent`, `running`, `ready`, `paused`, `exited` or
    `failed`."""

    argv: list[str]
    state: str
    pid: int
    exit: int


class NodeStatus(TypedDict, total=False):
    """The state of a node."""

    node: str
    addresses: list[str]
    init_pid: int
    absent: bool
    limits: dict[str, int]
    programs: list[ProgramStatus]


class ReplicaStatus(TypedDict, total=False):
    """A replica: `waiting`, `registered`, `unhealthy`, `draining`, `lost` or `removed`."""

    replica: str
    state: str
    ports: list[str]
    weight: int
    registered_ns: int
    withdrawn_ns: int
    connections: int
    flows: int
    live_connections: int
    live_flows: int
    packets: int
    bytes: int


class ServiceStatus(TypedDict, total=False):
    """A service."""

    service: str
    addresses: list[str]
    ports: list[str]
    origin: str
    policy: str
    fail_over: str
    at: list[str]
    replicas: list[ReplicaStatus]
    unserved_packets: int
    picked_up: int
    moved_flows: int
    lost_packets: int
    resets: int
    clamped: int
    evicted: int
    expired: int
    table: list[dict[str, Any]]
    table_left_out: int
    flows: list[dict[str, Any]]


class NatMapping(TypedDict, total=False):
    """An internal endpoint and the external one by which it is known."""

    protocol: str
    internal: str
    external: str
    remote: str
    forwarded: bool
    expires_ns: int
    sessions: int
    outbound: int
    inbound: int


class NatStatus(TypedDict, total=False):
    """The NAT of a router."""

    router: str
    type: str
    mappings_made: int
    mappings_held: int
    sessions_held: int
    mappings: list[NatMapping]


class RunStatus(TypedDict, total=False):
    """The state of a live run."""

    name: str
    elapsed_ns: int
    nodes: list[NodeStatus]
    services: list[ServiceStatus]
    nats: list[NatStatus]


class LaneStatus(TypedDict, total=False):
    """What one direction of a link is like and does. Bytes are IP bytes but for `wire`."""

    link: str
    direction: str
    state: str
    latency_ns: int
    rate_bit_per_s: int
    loss_ppb: int
    traced: list[str]
    offered_bit_per_s: int
    delivered_bit_per_s: int
    delivered_wire_bit_per_s: int
    queue_packets: int
    queue_bytes: int
    recent_queue_max_packets: int
    recent_dropped_packets: int
    recent_marked_packets: int
    recent_lateness_max_ns: int
    offered_packets: int
    delivered_packets: int
    dropped_packets: int
    marked_packets: int
    lateness_max_ns: int


class Snapshot(RunStatus, total=False):
    """What a live run does at a moment."""

    sampled_ns: int
    window_ns: int
    links: list[LaneStatus]


class LaneProperties(TypedDict, total=False):
    """What one direction of a link is asked to be like."""

    link: str
    direction: str
    state: str
    properties: dict[str, Any]
    changed_from: dict[str, Any]


class RecordStatus(TypedDict, total=False):
    """What is recorded of a live run."""

    on: bool
    layers: list[dict[str, Any]]
    bytes: int
    kept_bytes: int
    files: int
    removed_events: int
    read: int
    read_ns: int
    failure: str
