"""Windtunnel: unmodified programs on an emulated network, from Python.

    import windtunnel

    net = windtunnel.Network("ocean")
    net.node("paris")
    net.node("tokyo", run="python3 -m http.server --bind :: 80", daemon=True, ready="tcp:80")
    net.link("paris", "tokyo", name="ocean", latency="110ms", rate="10mbit")

    with net.run(seed=1) as run:
        run["paris"].exec("ping -c 1 tokyo", check=True)
        run["ocean"].set(latency="200ms")

A network can also be a file (`load`), a run can be one that lives already (`attach`, `runs`) or
one that is over (`open`). Calls that wait have `aio` to be awaited. docs/python.md is the tutorial.
"""

from __future__ import annotations

from windtunnel._version import __version__

TYPE_CHECKING = False  # as that of `typing`, which takes a third of the time of the rest

if TYPE_CHECKING:
    from windtunnel.command import DEVNULL, PIPE, STDOUT, Completed, Process
    from windtunnel.commands import (
        across,
        agent,
        attach_cluster,
        completions,
        doctor,
        edit,
        generate,
        hosts,
        images,
        import_file,
        init,
        keygen,
        limit,
        limits,
        manual,
        record_command,
        reserve,
        schema,
        set_limit,
        verbs,
    )
    from windtunnel.errors import (
        CommandFailed,
        CommandNotRun,
        ControlError,
        ExpectationFailed,
        InternalError,
        MachineError,
        Mistake,
        NoReport,
        NoRun,
        NotFaithful,
        NotFaithfulWarning,
        NotSupported,
        ProgramFailed,
        ProgramNotFound,
        RunError,
        RunFailed,
        ScenarioError,
        StrangeFile,
        TimeoutExpired,
        UsageError,
        WindtunnelError,
    )
    from windtunnel.events import Event, Events
    from windtunnel.faults import Fault
    from windtunnel.link import Link
    from windtunnel.names import LanName, LinkName, NodeName, RouterName, ServiceName
    from windtunnel.network import Network
    from windtunnel.node import Node
    from windtunnel.recording import Capture, Recording, Records
    from windtunnel.report import Report, Verdict
    from windtunnel.results import Results, compare
    from windtunnel.run import Run, attach, runs
    from windtunnel.scenario import File, Scenario, load
    from windtunnel.service import Service

    open = Results

__all__ = [
    "DEVNULL",
    "PIPE",
    "STDOUT",
    "Capture",
    "CommandFailed",
    "CommandNotRun",
    "Completed",
    "ControlError",
    "Event",
    "Events",
    "ExpectationFailed",
    "Fault",
    "File",
    "InternalError",
    "LanName",
    "Link",
    "LinkName",
    "MachineError",
    "Mistake",
    "Network",
    "NoReport",
    "NoRun",
    "Node",
    "NodeName",
    "NotFaithful",
    "NotFaithfulWarning",
    "NotSupported",
    "Process",
    "ProgramFailed",
    "ProgramNotFound",
    "Recording",
    "Records",
    "Report",
    "Results",
    "RouterName",
    "Run",
    "RunError",
    "RunFailed",
    "Scenario",
    "ScenarioError",
    "Service",
    "ServiceName",
    "StrangeFile",
    "TimeoutExpired",
    "UsageError",
    "Verdict",
    "WindtunnelError",
    "__version__",
    "across",
    "agent",
    "attach",
    "attach_cluster",
    "compare",
    "completions",
    "doctor",
    "edit",
    "generate",
    "hosts",
    "images",
    "import_file",
    "init",
    "keygen",
    "limit",
    "limits",
    "load",
    "manual",
    "open",
    "record_command",
    "reserve",
    "runs",
    "schema",
    "set_limit",
    "verbs",
]

_HOMES = {
    "command": "Completed DEVNULL PIPE Process STDOUT",
    "commands": (
        "across agent attach_cluster completions doctor edit generate hosts images import_file "
        "init keygen limit limits manual record_command reserve schema set_limit verbs"
    ),
    "errors": (
        "CommandFailed CommandNotRun ControlError ExpectationFailed InternalError MachineError "
        "Mistake NoReport NoRun NotFaithful NotFaithfulWarning NotSupported ProgramFailed "
        "ProgramNotFound RunError RunFailed ScenarioError StrangeFile TimeoutExpired "
        "UsageError WindtunnelError"
    ),
    "events": "Event Events",
    "faults": "Fault",
    "link": "Link",
    "names": "LanName LinkName NodeName RouterName ServiceName",
    "network": "Network",
    "node": "Node",
    "recording": "Capture Recording Records",
    "report": "Report Verdict",
    "results": "Results compare open",
    "run": "Run attach runs",
    "scenario": "File Scenario load",
    "service": "Service",
}
"""The module of each name: it is imported when the name is used first, so that `import windtunnel`
costs next to nothing."""


if not TYPE_CHECKING:

    def __getattr__(name):
        import importlib

        for home, names in _HOMES.items():
            if name in names.split():
                module = importlib.import_module(f"windtunnel.{home}")
                value = getattr(module, "Results" if name == "open" else name)
                globals()[name] = value
                return value
        raise AttributeError(f"module `windtunnel` has no `{name}`")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
