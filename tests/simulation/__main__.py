"""Runs many lives on all cores: `python -m tests.simulation --seeds 1000 --first 0`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from multiprocessing import get_context

from tests.simulation.life import Verdict, floors, live_alone
from tests.support.floors import judged, shortfalls


def main() -> int:
    """Run the lives; exit with status 1 if one has a problem, or if all together have judged too little."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many lives")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--trace", action="store_true", help="print all that happens in each life")
    options = parser.parse_args()
    began, lives, failed = time.monotonic(), list[Verdict](), list[int]()
    # ProcessPoolExecutor hangs once its processes have reached their task limit: github.com/python/cpython/issues/115634
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=200) as pool:
        for verdict in pool.imap(live_alone, range(options.first, options.first + options.seeds)):
            lives.append(verdict)
            _tell(verdict, trace=options.trace)
            if verdict.problems:
                failed.append(verdict.seed)
    few = floors(lives)
    print(_summary(lives, time.monotonic() - began), judged(few), *shortfalls(few), sep="\n")
    if failed:
        print(
            f"{len(failed)} failed: {' '.join(map(str, failed))}. Again: python -m tests.simulation --seeds 1 --trace --first {failed[0]}"
        )
    return bool(failed or shortfalls(few))


def _tell(verdict: Verdict, *, trace: bool) -> None:
    if trace:
        print(*(f"{at} {text}" for at, text in verdict.trace), sep="\n")
    for problem in verdict.problems[:5]:
        print(f"seed {verdict.seed}: {problem}")


def _summary(lives: list[Verdict], took_s: float) -> str:
    parts = [
        f"{len(lives):,} lives in {took_s:.0f} s",
        f"{sum(life.hours for life in lives):,.0f} simulated hours",
    ]
    for name in ("faults", "crashes", "requests", "replays", "events", "posts", "frames"):
        parts.append(f"{sum(getattr(life, name) for life in lives):,} {name}")
    return ", ".join(parts) + "."


if __name__ == "__main__":
    sys.exit(main())
