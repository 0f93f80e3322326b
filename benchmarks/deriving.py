"""Figures derived from a run's: the parts of a POST's cost, and the capacity of one machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from benchmarks.report import Cell, Section

_GB: Final = 10**6
"""Size in KB."""
_TB: Final = 10**9
_DAY_S: Final = 86_400

_Sections = Mapping[str, Section]


def derive(sections: _Sections) -> list[Section]:
    """Derive all figures that the run's figures allow."""
    parts, holds = list(_parts(sections)), list(_holds(sections))
    found: list[Section] = []
    if parts:
        note = (
            "Processor time of the server: HTTP is that of the empty route, the engine's that of a command without HTTP at the "
            "same number under way, each measured alone. The rest is the route's own work: credential, body, limits, answer, log, "
            "metrics; below zero where the parts share work that they do not share alone."
        )
        columns = ("what of it", "µs", "share")
        found.append(Section("parts", "A POST's cost, part by part", columns, parts, note))
    if holds:
        note = "Derived from the tables above. Figures of memory do not include the program's own."
        found.append(
            Section("holds", "The capacity of one core and its machine", ("what", "how many"), holds, note)
        )
    return found


def _cell(sections: _Sections, name: str, column: str, **wanted: Cell) -> float | None:
    """Return the figure of the last row whose cells begin with these values; columns by their names, `_` for a blank."""
    section = sections.get(name)
    if section is None:
        return None
    found: float | None = None
    for row in section.rows:
        cells = dict(zip(section.columns, row, strict=True))
        value = cells[column]
        fits = all(str(cells[key.replace("_", " ")]).startswith(str(start)) for key, start in wanted.items())
        if fits and isinstance(value, int | float):
            found = float(value)
    return found


def _parts(sections: _Sections) -> Iterator[tuple[Cell, ...]]:
    most = _cell(sections, "post", "connections")
    at_most = 0 if most is None else int(most)
    whole = _cell(sections, "post", "server's µs", server="Deskwire, 64 ", connections=at_most)
    http = _cell(sections, "route", "server's µs", server="Deskwire", connections=at_most)
    engine = _cell(sections, "engine", "µs", what=f"commands, {at_most} ")
    if not whole or http is None or engine is None:
        return
    shares = {
        "HTTP": http,
        "engine and storage": engine,
        "the rest": whole - http - engine,
        "all of it": whole,
    }
    for what, us in shares.items():
        yield what, us, us / whole


def _holds(sections: _Sections) -> Iterator[tuple[Cell, ...]]:
    rate = _cell(sections, "maximum", "POST/s", read_by="Deskwire, one consumer and one webhook")
    if rate:
        yield "messages a second at most, with a consumer and a webhook", rate
        yield "messages a day at half of that", int(rate / 2 * _DAY_S)
    size = _cell(sections, "growth", "KB a message")
    if size:
        yield "messages on 1 TB of disk", int(_TB / size)
    for what in (
        "a live conversation",
        "an idle kept connection, ",
        "an idle kept connection with TLS",
        "an idle sub",
    ):
        each = _cell(sections, "memory", "KB each", what=what)
        if each and each > 0:
            label = {
                "an idle sub": "idle subscribed websockets",
                "a live conversation": "live conversations",
            }.get(what, what.strip(" ,").replace("an idle kept connection", "idle kept connections"))
            yield f"{label} in 1 GB of memory", int(_GB / each)
