"""A network built in code."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

from windtunnel import errors, launch, yaml
from windtunnel.names import LanName, LinkName, NodeName, RouterName, ServiceName
from windtunnel.scenario import Scenario

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from windtunnel import keys

    PathLike = Union[str, "os.PathLike[str]"]
    Command = Union[str, Sequence[Any]]


class Network(Scenario):
    """Nodes, routers and links, each added by a call:

        net = Network("ocean")
        web = net.node("web", run="python3 -m http.server --bind :: 80", daemon=True)
        net.node("client")
        net.link("client", web, name="ocean", latency="20ms", rate="10mbit")

    Every key of the scenario file can be said as a keyword: `-` is `_`, and Python's own words end
    with `_` (`for_`, `from_`). Values are those of the file; maps within values have its keys.
    Relative paths start at `folder`, else at the folder that is current when it is run. Names
    cannot be checked before everything is there: `check` and `run` do that.
    """

    def __init__(
        self,
        name: str = "network",
        *,
        folder: Optional[PathLike] = None,
        **properties: Unpack[keys.NetworkKeys],
    ) -> None:
        self.name = name
        self.folder = folder
        self._document: dict[str, Any] = {"name": name, **_file_keys(properties)}
        self._document["nodes"] = {}
        self._calls: dict[tuple[str, Any], _Call] = {}

    @classmethod
    def of_dict(cls, document: Mapping[str, Any], *, folder: Optional[PathLike] = None) -> Network:
        """A network of what `to_dict` returns, to which more can be added."""
        net = cls(str(document.get("name", "network")), folder=folder)
        for key, value in document.items():
            is_list = isinstance(value, (list, tuple))
            if key == "lans" and is_list:  # names without more
                value, is_list = {str(name): None for name in value}, False
            is_map = isinstance(value, Mapping)
            net._document[key] = dict(value) if is_map else list(value) if is_list else value
        return net

    def node(
        self, name: str, run: Union[Command, None] = None, **properties: Unpack[keys.NodeKeys]
    ) -> NodeName:
        """Adds a node, a host of its own for the programs that `run` names."""
        said = {} if run is None else {"run": run}
        return NodeName(self._add("nodes", name, {**said, **_file_keys(properties)}))

    def router(self, *names: str) -> RouterName:
        """Adds routers, which forward packets and run no programs; returns the first."""
        if not names:
            raise errors.UsageError("a router has no name")
        there = self._document.setdefault("routers", [])
        there.extend(str(name) for name in names)
        self._remember("routers", None)
        return RouterName(names[0])

    def lan(self, name: str, **properties: Unpack[keys.LanKeys]) -> LanName:
        """Adds a LAN, to which nodes and routers are attached by links."""
        return LanName(self._add("lans", name, _file_keys(properties)))

    def link(
        self,
        a: str,
        b: str,
        name: Optional[str] = None,
        **properties: Unpack[keys.LinkKeys],
    ) -> LinkName:
        """Adds a link between two nodes, groups, routers or LANs. Properties hold for both
        directions; `up` (from `a` to `b`) and `down` win over them."""
        said = {} if name is None else {"name": str(name)}
        entry = {"between": [str(a), str(b)], **said, **_file_keys(properties)}
        self._append("links", entry)
        return LinkName(name or self._link_name(str(a), str(b)))

    def service(
        self,
        name: str,
        replicas: Union[str, Sequence[str]],
        ports: Union[str, Sequence[str]],
        **properties: Unpack[keys.ServiceKeys],
    ) -> ServiceName:
        """Adds an address that several nodes answer for."""
        entry = {"replicas": _plain(replicas), "ports": ports, **_file_keys(properties)}
        return ServiceName(self._add("services", name, entry))

    def reserve(
        self, name: str, of: Union[str, Sequence[str]], **properties: Unpack[keys.ReservationKeys]
    ) -> None:
        """Gives several nodes limits, minima and weights together."""
        self._add("reserve", name, {"of": _plain(of), **_file_keys(properties)})

    def event(self, at: Optional[str] = None, **event: Unpack[keys.EventKeys]) -> None:
        """Adds a change at a time after the run began:
        `event("2s", link="ocean", set={"latency": "200ms"})`."""
        said = {} if at is None else {"at": at}
        self._append("events", {**said, **_file_keys(event)})

    def expect(self, **expectation: Unpack[keys.ExpectKeys]) -> None:
        """Adds what must hold at the end: `expect(node="client", exit=0)`."""
        self._append("expect", _file_keys(expectation))

    def route(self, **route: Unpack[keys.RouteKeys]) -> None:
        """Adds a route to use instead of the shortest."""
        self._append("routes", _file_keys(route))

    def defaults(
        self,
        *,
        node: Optional[keys.NodeDefaultKeys] = None,
        link: Optional[keys.LinkDefaultKeys] = None,
    ) -> None:
        """What holds for every node and every link that does not say otherwise, as maps of
        keywords: `defaults(link={"latency": "5ms"})`."""
        there = self._document.setdefault("defaults", {})
        for key, properties in (("node", node), ("link", link)):
            if properties is not None:
                there.setdefault(key, {}).update(_file_keys(properties))
        self._remember("defaults", None)

    def set(self, **properties: Unpack[keys.NetworkKeys]) -> None:
        """Says something of the whole: `set(duration="10s", seed=7)`."""
        self._document.update(_file_keys(properties))

    def to_dict(self) -> dict[str, Any]:
        """The scenario as a dict with the keys of the file."""
        return {key: value for key, value in self._document.items() if value is not None}

    def to_yaml(self) -> str:
        return yaml.write(self.to_dict())[0]

    def source(self) -> launch.Source:
        folder = os.path.abspath(self.folder) if self.folder is not None else None
        return launch.Source(self.name, None, self.to_yaml(), folder)

    def save(self, path: PathLike) -> None:
        """Writes the scenario to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_yaml())

    def _repr_html_(self) -> str:
        from windtunnel import drawing

        return drawing.of_document(self.to_dict())

    def __repr__(self) -> str:
        nodes, links = len(self._document["nodes"]), len(self._document.get("links", []))
        return f"<Network {self.name}: {nodes} nodes, {links} links>"

    def _add(self, block: str, name: str, entry: dict[str, Any]) -> str:
        there = self._document.setdefault(block, {})
        if name in there:
            raise errors.UsageError(f"{name} is there already", "take another name")
        there[str(name)] = entry
        self._remember(block, str(name))
        return name

    def _append(self, block: str, entry: dict[str, Any]) -> None:
        there = self._document.setdefault(block, [])
        there.append(entry)
        self._remember(block, len(there) - 1)

    def _link_name(self, a: str, b: str) -> str:
        """The name that a link without one gets: the same pair of ends counts."""
        same = sum(1 for it in self._document["links"] if it["between"] == [a, b])
        return f"{a}--{b}" if same == 1 else f"{a}--{b}-{same}"

    def _remember(self, block: str, entry: Any) -> None:
        """Where the caller said it: the first frame that is not of this class."""
        frame = sys._getframe(1)
        while frame.f_code.co_filename == __file__ and frame.f_back is not None:
            frame = frame.f_back
        self._calls[block, entry] = _Call(frame.f_code.co_filename, frame.f_lineno)

    def _placed(self, error: errors.ScenarioError) -> errors.ScenarioError:
        """Mistakes with the place of the call that said what is wrong."""
        origins = yaml.write(self.to_dict())[1]
        placed = []
        for mistake in error.mistakes:
            call = self._calls.get(origins.get(mistake.line, ("", None)))
            if mistake.file == "<stdin>" and call is not None:
                mistake = mistake._replace(file=call.file, line=call.line, column=1)
            elif mistake.file == "<stdin>":
                mistake = mistake._replace(file=f"<Network {self.name}>")
            placed.append(mistake)
        return errors.ScenarioError(error.message, None, placed, error.reasons)


class _Call(NamedTuple):
    file: str
    line: int


def _file_keys(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Keywords as keys of the file."""
    return {
        key.rstrip("_").replace("_", "-"): _plain(value)
        for key, value in properties.items()
        if value is not None
    }


def _plain(value: Any) -> Any:
    """Names as texts, tuples as lists."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, tuple):
        return [_plain(it) for it in value]
    return value
