"""The report of a run, `run.json`: docs/reference/run-folder.md says what each field means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional, TypedDict

from windtunnel import errors


class Summary(TypedDict):
    """Figures of lateness."""

    packets: int
    p50_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


class Program(TypedDict, total=False):
    """One program."""

    node: str
    program: int
    argv: list[str]
    daemon: bool
    failed: bool
    starts: int
    started_ns: Optional[int]
    ready_ns: Optional[int]
    exited_ns: Optional[int]
    exit: Optional[int]
    ended: str
    output_bytes: int
    output_discarded_bytes: int


class Expectation(TypedDict, total=False):
    """An expectation and what was seen."""

    line: int
    about: str
    asked: str
    seen: str
    met: bool
    look: Optional[str]


class Achieved(TypedDict, total=False):
    """Achieved figures of a link direction."""

    latency_mean_ns: Optional[int]
    rate_busy_bit_per_s: Optional[int]
    rate_peak_bit_per_s: Optional[int]
    loss_ppb: Optional[int]


class LinkReport(TypedDict, total=False):
    """One link direction: asked and achieved."""

    link: str
    direction: str
    asked: dict[str, Any]
    queue: Optional[str]
    offered_packets: int
    offered_bytes: int
    delivered_packets: int
    delivered_bytes: int
    dropped_packets: dict[str, int]
    duplicated_packets: int
    fragmented_packets: int
    fragments_packets: int
    corrupted_packets: int
    reordered_packets: int
    marked_packets: int
    in_flight_packets: int
    queue_max_packets: int
    queue_max_bytes: int
    achieved: Achieved
    lateness: Summary
    late_packets: int
    phases: list[dict[str, Any]]


class VerdictFields(TypedDict, total=False):
    """`verdict` of the report."""

    faithful: bool
    disturbed: bool
    passed: bool
    exit_code: int
    text: str
    unfaithful: list[str]
    failures: list[str]
    incomplete: list[str]
    warnings: list[str]


class Report(TypedDict, total=False):
    """A whole run. Field names carry their units."""

    windtunnel: str
    name: str
    seed: int
    plan_hash: str
    began_unix_s: int
    kernel: str
    elapsed_ns: int
    setup_ns: int
    ended: str
    verdict: VerdictFields
    partial: bool
    attempts: list[dict[str, Any]]
    lost: list[dict[str, Any]]
    lateness: Summary
    planned: dict[str, Any]
    machine: dict[str, Any]
    hosts: list[dict[str, Any]]
    programs: list[Program]
    limits: list[dict[str, Any]]
    received: list[dict[str, Any]]
    services: list[dict[str, Any]]
    replicas_watched: dict[str, Any]
    shares: list[dict[str, Any]]
    bounds: list[dict[str, Any]]
    internet: dict[str, Any]
    expectations: list[Expectation]
    links: list[LinkReport]
    routers: list[dict[str, Any]]
    records: dict[str, Any]


class Verdict:
    """Whether a run may be believed and did what was expected."""

    def __init__(self, report: Report, folder: str) -> None:
        verdict = report["verdict"]
        self.faithful: bool = verdict["faithful"]
        """Whether every packet left when it should have, within the bound."""
        self.disturbed: bool = verdict.get("disturbed", False)
        """Whether it was unfaithful only because the machine did not keep up."""
        self.passed: bool = verdict["passed"]
        """Whether every program and expectation did what it should."""
        self.exit_code: int = verdict["exit_code"]
        self.text: str = verdict["text"]
        """The verdict in one line."""
        self.unfaithful: list[str] = verdict.get("unfaithful", [])
        self.failures: list[str] = verdict.get("failures", [])
        self.incomplete: list[str] = verdict.get("incomplete", [])
        self.warnings: list[str] = verdict.get("warnings", [])
        self._report = report
        self._folder = folder

    def __bool__(self) -> bool:
        """Whether it was faithful and passed."""
        return self.exit_code == 0

    def check(self, *, faithful: bool = True) -> None:
        """Raises what is wrong with the run, if anything is.

        Args:
            faithful: whether a run that is not to be believed is wrong.

        Raises:
            ExpectationFailed, ProgramFailed, RunFailed: it has not passed.
            NotFaithful: it has passed, but is not to be believed.
        """
        if not self.passed:
            raise self._failed()
        if not self.faithful:
            if not faithful:
                return
            error = errors.NotFaithful(self.text, self._folder, self.unfaithful)
            error.disturbed = self.disturbed
            raise error
        if self.exit_code != 0:
            raise errors.RunFailed(self.text, self._folder, self.incomplete)

    def _failed(self) -> errors.RunFailed:
        unmet = [it for it in self._report.get("expectations", []) if not it["met"]]
        reasons = self.failures + self.unfaithful
        if any(program["failed"] for program in self._report.get("programs", [])):
            return errors.ProgramFailed(self.text, self._folder, reasons)
        kind = errors.ExpectationFailed if unmet else errors.RunFailed
        return kind(self.text, self._folder, reasons)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Verdict {self.text}>"


def names(plan: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of a plan by what they are of."""
    nodes = [node["name"] for node in plan["nodes"]]
    groups = {node["group"] for node in plan["nodes"] if node.get("group")} - set(nodes)
    return {
        "node": nodes,
        "group": sorted(groups),
        "router": [router["name"] for router in plan.get("routers", [])],
        "link": [link["name"] for link in plan["links"]],
        "service": [service["name"] for service in plan.get("services", [])],
        "reservation": [it["name"] for it in plan.get("reservations", [])],
    }
