"""A link of a live run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

from windtunnel import errors, program
from windtunnel.aio import waits
from windtunnel.faults import Fault

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from windtunnel.keys import LinkProperties
    from windtunnel.run import Run
    from windtunnel.status import LaneProperties


class Link:
    """A link by its name. `direction` is `up`, `down` or `from-to`; without it, both."""

    def __init__(self, run: Run, name: str) -> None:
        self.run = run
        self.name = name

    @waits
    def set(self, *, direction: Optional[str] = None, **properties: Unpack[LinkProperties]) -> None:
        """Changes properties, all at one instant: `set(latency="200ms", loss="1%")`. What is not
        named stays as it is."""
        if not properties:
            raise errors.UsageError(
                f"nothing is to be set at {self.name}",
                'give a property, as in `set(latency="200ms")`',
            )
        if self._set_at_once(direction, properties):
            return
        pairs = [f"{key}={program.text_of(value)}" for key, value in properties.items()]
        program.ask("set", self.name, *pairs, direction=direction, run=self.run.folder)

    @waits
    def down(self, direction: Optional[str] = None) -> Fault:
        """Takes it down: it carries nothing until it is up again. In a `with` block, it is up
        again at the end of that."""
        self._state(direction, up=False)
        return Fault(lambda: self.up(direction))

    @waits
    def up(self, direction: Optional[str] = None) -> None:
        """Brings it up again."""
        self._state(direction, up=True)

    def status(self) -> list[LaneProperties]:
        """What both directions are asked to be like now."""
        return [lane for lane in self.run.links() if lane["link"] == self.name]

    def _state(self, direction: Optional[str], up: bool) -> None:
        self.run.control.ask("state", link=self.name, direction=direction, up=up)

    def _set_at_once(self, direction: Optional[str], properties: Mapping[str, Any]) -> bool:
        """Asks the run itself, for values that its messages have as the file writes them. Any
        other value, and one that the run refuses, is for the program, which has the grammar of
        the file, and says what is wrong in its words."""
        if self.run.plan.get("model", "hops") != "hops":
            return False  # which properties may change there is for the program to say
        if not all(_is_plain(key, value) for key, value in properties.items()):
            return False
        patch = {key: _in_message(key, value) for key, value in properties.items()}
        try:
            self.run.control.ask("set", link=self.name, direction=direction, patch=patch)
        except errors.NoRun:
            raise
        except errors.ControlError:
            return False
        return True

    def __repr__(self) -> str:
        return f"<Link {self.name}>"


def _is_plain(key: str, value: Any) -> bool:
    return key in _PLAIN and isinstance(value, str) and value[:1].isdigit()


def _in_message(key: str, value: str) -> Union[str, dict[str, str]]:
    within = _PLAIN[key]
    return value if within is None else {within: value}


_PLAIN = {
    "latency": None,
    "rate": "to",
    "loss": "independent",
    "duplicate": None,
    "corrupt": None,
}
"""Properties of which messages have a quantity with its unit as the file has it, or in a map with
this key."""
