"""The trend of a series: its slope over the second half of a run, with its confidence interval.

Neighbouring samples are correlated, which makes a slope look more certain than it is. So they are first grouped in
blocks, and the line is fitted to the blocks' means.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

BLOCKS: Final = 12
_T: Final = 3.169
"""Student's t for 99 % and 10 degrees of freedom: the number of blocks minus a line's two."""
TOLERATED: Final = 0.02
"""Growth over the second half, as a share of the mean, that is ignored."""

Verdict = Literal["flat", "grows", "too much", "too short"]


@dataclass(frozen=True, slots=True)
class Trend:
    """A series' mean, and its slope an hour with the half width of its 99 % interval."""

    mean: float
    slope: float
    margin: float
    verdict: Verdict


def trend(at_s: Sequence[float], values: Sequence[float], least: float) -> Trend:
    """Return the trend over the second half.

    Args:
        least: growth over that half, in the series' unit, that is ignored however small the mean is.
    """
    both = [(at, value) for at, value in zip(at_s, values, strict=True) if not math.isnan(value)]
    half = [pair for pair in both if pair[0] >= at_s[-1] / 2] if both else []
    if len(half) < BLOCKS:
        mean = statistics.fmean(value for _, value in half) if half else math.nan
        return Trend(mean, math.nan, math.nan, "too short")
    blocks = [half[n * len(half) // BLOCKS : (n + 1) * len(half) // BLOCKS] for n in range(BLOCKS)]
    hours = [statistics.fmean(at for at, _ in block) / 3_600 for block in blocks]
    means = [statistics.fmean(value for _, value in block) for block in blocks]
    mean = statistics.fmean(means)
    slope, margin = _line(hours, means)
    growth = slope * (half[-1][0] - half[0][0]) / 3_600
    grows = slope - margin > 0 and growth > max(TOLERATED * abs(mean), least)
    return Trend(mean, slope, margin, "grows" if grows else "flat")


def _line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Return the slope of the best-fitting line, and half the width of its 99 % interval."""
    slope, intercept = statistics.linear_regression(xs, ys)
    middle = statistics.fmean(xs)
    spread = sum((x - middle) ** 2 for x in xs)
    rest = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    return slope, _T * math.sqrt(rest / (len(xs) - 2) / spread)
