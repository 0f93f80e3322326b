"""Plots as SVG, drawn by hand: plain, small, readable at 700 pixels and on light and dark pages alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from benchmarks.report import text

_WIDTH: Final = 700
_LETTER: Final = 7.2
"""The width of a letter, or slightly less, from which the space for labels is computed."""
_VALUES: Final = 70
"""Space for the figure after the longest bar."""
_ROW: Final = 22
_TOP: Final = 48
_STYLE: Final = """
    text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #6b7685 }
    .title { font-size: 15px; font-weight: 600 }
    .small { font-size: 12px }
    .label, .tick { text-anchor: end }
    .below { text-anchor: middle }
    .theirs { fill: #94a3b8 }
    .ours { fill: #3b82f6 }
    .grid { stroke: #94a3b8; stroke-opacity: 0.4 }
    .line { fill: none; stroke-width: 2.5 }
    .s0 { stroke: #3b82f6 } .s1 { stroke: #d97706 } .s2 { stroke: #059669 } .s3 { stroke: #a855f7 }
    .f0 { fill: #3b82f6 } .f1 { fill: #d97706 } .f2 { fill: #059669 } .f3 { fill: #a855f7 }
"""
"""Colours between light and dark, because a picture only knows the system's theme, which may differ from the page's."""
_COLOURS: Final = 4

Bars = Sequence[tuple[str, Sequence[tuple[str, float]]]]
"""Groups of bars: a heading, "" for none, and the bars' labels and lengths."""
Lines = Sequence[tuple[str, Sequence[tuple[float, float]]]]


def bars(title: str, unit: str, groups: Bars) -> str:
    """Draw horizontal bars, group under group; Deskwire's own are highlighted if there are others."""
    longest = max((value for _, rows in groups for _, value in rows), default=0.0) or 1.0
    labels = [label for _, rows in groups for label, _ in rows]
    left = round(max(map(len, labels), default=0) * _LETTER) + 16
    scale = (_WIDTH - left - _VALUES) / longest
    alone = not any(map(_ours, labels))
    parts, y = list[str](), _TOP
    for heading, rows in groups:
        if heading:
            parts.append(f'<text class="small" x="0" y="{y + 15}">{escape(heading)}</text>')
            y += _ROW
        for label, value in rows:
            kind = "ours" if alone or _ours(label) else "theirs"
            parts.append(f'<text class="label" x="{left - 8}" y="{y + 15}">{escape(label)}</text>')
            parts.append(
                f'<rect class="{kind}" x="{left}" y="{y + 3}" width="{value * scale:.1f}" height="{_ROW - 6}" rx="2"/>'
            )
            parts.append(
                f'<text class="small" x="{left + value * scale + 6:.1f}" y="{y + 15}">{text(value)}</text>'
            )
            y += _ROW
        y += _ROW // 3
    return _picture(title, unit, parts, y)


def _ours(label: str) -> bool:
    return label.startswith("Deskwire")


_LEFT, _RIGHT, _HEIGHT = 60, 160, 240
"""A line plot's space for ticks, its space for the names after the lines, and its height."""
_NAME: Final = 16
"""The smallest distance between the names of two lines."""


def lines(title: str, unit: str, series: Lines, below: str) -> str:
    """Draw lines over a logarithmic axis, from zero upwards, each with its name after its end."""
    xs = sorted({x for _, points in series for x, _ in points})
    top = _round_up(max((y for _, points in series for _, y in points), default=1.0))
    first, span = math.log10(xs[0]), math.log10(xs[-1] / xs[0]) or 1.0

    def place(x: float, y: float) -> tuple[float, float]:
        across = (math.log10(x) - first) / span * (_WIDTH - _LEFT - _RIGHT)
        return _LEFT + across, _TOP + _HEIGHT * (1 - y / top)

    parts: list[str] = []
    for quarter in range(5):
        _, y = place(xs[0], top * quarter / 4)
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f} H{_WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text class="small tick" x="{_LEFT - 8}" y="{y + 4:.1f}">{top * quarter / 4:,.10g}</text>'
        )
    for x in xs:
        at, _ = place(x, 0)
        parts.append(
            f'<text class="small below" x="{at:.1f}" y="{_TOP + _HEIGHT + 20}">{text(int(x))}</text>'
        )
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text class="small below" x="{middle}" y="{_TOP + _HEIGHT + 42}">{escape(below)}</text>')
    for number, (_, points) in enumerate(series):
        path = " L".join(f"{x:.1f} {y:.1f}" for x, y in (place(*point) for point in points))
        parts.append(f'<path class="line s{number % _COLOURS}" d="M{path}"/>')
    ends = [(place(*points[-1])[1], number) for number, (_, points) in enumerate(series)]
    for y, number in _apart(ends):
        name = escape(series[number][0])
        parts.append(
            f'<text class="f{number % _COLOURS}" x="{_WIDTH - _RIGHT + 8}" y="{y + 4:.1f}">{name}</text>'
        )
    return _picture(title, unit, parts, _TOP + _HEIGHT + 54)


def _apart(ends: Sequence[tuple[float, int]]) -> Iterator[tuple[float, int]]:
    """Return the same heights from bottom to top, moved apart so that names are legible."""
    last = math.inf
    for y, number in sorted(ends, reverse=True):
        last = min(y, last - _NAME)
        yield last, number


def _round_up(value: float) -> float:
    """Round up to 1, 2, 4 or 8 times a power of ten, so that four steps are plain figures."""
    power = 10.0 ** math.floor(math.log10(value)) if value > 0 else 1.0
    return next(step * power for step in (1, 2, 4, 8, 10) if value <= step * power)


def _picture(title: str, unit: str, parts: Sequence[str], height: int) -> str:
    body = "\n".join(f"  {part}" for part in parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'aria-labelledby="title">\n  <title id="title">{escape(title)}, {escape(unit)}</title>\n'
        f"  <style>{_STYLE}  </style>\n"
        f'  <text class="title" x="0" y="18">{escape(title)}</text>\n'
        f'  <text class="small" x="0" y="36">{escape(unit)}</text>\n{body}\n</svg>\n'
    )
