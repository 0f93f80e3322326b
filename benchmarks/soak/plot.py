"""A picture of the run as SVG: panels one above the other over the same minutes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_WIDTH: Final = 860
_LEFT: Final = 64
_RIGHT: Final = 150
_HEIGHT: Final = 110
_GAP: Final = 34
_TOP: Final = 40
_COLOURS: Final = ("#2563eb", "#d97706", "#059669")
_FONT: Final = 'font-family="system-ui, sans-serif" font-size="11" fill="#334155"'
_POINTS: Final = 400
"""The most points of a line; more than there are pixels would not be visible."""


@dataclass(frozen=True, slots=True)
class Panel:
    """Lines that share a scale, by name."""

    title: str
    lines: dict[str, Sequence[float]]


def picture(title: str, at_s: Sequence[float], panels: Sequence[Panel]) -> str:
    """Return the SVG of the panels over their minutes."""
    height = _TOP + len(panels) * (_HEIGHT + _GAP) + 10
    body = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_LEFT}" y="22" font-size="14" fill="#0f172a">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        body += _panel(panel, at_s, _TOP + number * (_HEIGHT + _GAP))
    return "\n".join([*body, "</svg>", ""])


def _panel(panel: Panel, at_s: Sequence[float], top: float) -> list[str]:
    values = [value for line in panel.lines.values() for value in line if not math.isnan(value)]
    upto = _round_up(max(values, default=1.0))
    longest = max(at_s[-1], 1.0)
    right, bottom = _WIDTH - _RIGHT, top + 16 + _HEIGHT - 16
    parts = [f'<text x="{_LEFT}" y="{top + 10:.0f}" font-weight="600">{escape(panel.title)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - share * (_HEIGHT - 16)
        parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e2e8f0"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{upto * share:,.6g}</text>')
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + share * (right - _LEFT)
        words = f"{longest * share / 60:.1f} min" if share else "0"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 14:.1f}" text-anchor="middle">{words}</text>')
    for number, (name, line) in enumerate(panel.lines.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        step = max(1, len(line) // _POINTS)
        points = " ".join(
            f"{_LEFT + at / longest * (right - _LEFT):.1f},{bottom - value / upto * (_HEIGHT - 16):.1f}"
            for at, value in list(zip(at_s, line, strict=True))[::step]
            if not math.isnan(value)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(
            f'<text x="{right + 10}" y="{top + 28 + 15 * number:.0f}" fill="{colour}">{escape(name)}</text>'
        )
    return parts


def _round_up(value: float) -> float:
    """Return the next larger number that is easy to read."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 2.5, 5, 10) if step * power >= value)
