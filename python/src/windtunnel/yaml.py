"""Scenarios as YAML: a line for each node, link and event, so that a line leads back to the call
that said it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from windtunnel import errors

BLOCKS = ("nodes", "lans", "services", "reserve", "links", "routes", "events", "expect")
"""Keys whose entries have a line each."""


def write(document: Mapping[str, Any]) -> tuple[str, dict[int, tuple[str, Any]]]:
    """The text of a scenario; and for the number of each line of an entry, the key it is of and
    the entry's name or position."""
    lines: list[str] = []
    origins: dict[int, tuple[str, Any]] = {}
    for key, value in document.items():
        if key not in BLOCKS or not value or not isinstance(value, (Mapping, list)):
            lines.append(f"{key}: {flow(value)}")
            origins[len(lines)] = (key, None)
            continue
        lines.append(f"{key}:")
        named = isinstance(value, Mapping)
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for name, entry in entries:
            lines.append(f"  {scalar(name)}: {flow(entry)}" if named else f"  - {flow(entry)}")
            origins[len(lines)] = (key, name)
    return "\n".join(lines) + "\n", origins


def flow(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(it)}" for key, it in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(flow(it) for it in value) + "]"
    return scalar(value)


def scalar(value: Any) -> str:
    """A text, number, boolean or nothing; a text is quoted where it would be read as another."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise errors.UsageError(f"a scenario holds no {type(value).__name__}: {value!r}")
    is_plain = _PLAIN.fullmatch(value) and not _OTHER.fullmatch(value)
    return value if is_plain else json.dumps(value, ensure_ascii=False)


_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./%+-]*")
"""What needs no quotes in any place of YAML."""

_OTHER = re.compile(
    r"(?i:true|false|null|yes|no|on|off|y|n|~)"
    r"|[-+.]?[0-9][0-9_.]*(e[-+]?[0-9]+)?|0[xo][0-9a-f]+|[-+]?\.(inf|nan)",
    re.IGNORECASE,
)
"""What is read as a boolean, a number or nothing without quotes."""
