"""`python -m benchmarks.soak`: a server at half its load for a long time, while clients come and go. See docs/testing.md."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click
import httpx
import structlog
import trio
from rich.console import Console

from benchmarks import processes
from benchmarks.report import Cell, Section, machine, machine_line, markdown, show
from benchmarks.service import Server, deskwire
from benchmarks.soak.plot import Panel, picture
from benchmarks.soak.sample import Sample, metrics, write_csv
from benchmarks.soak.traffic import Plan, Traffic
from benchmarks.soak.trend import trend

_RESULTS: Final = Path(__file__).parents[1] / "results"
_SAMPLES: Final = 300
_KEPT_LEAST_S: Final = 60.0
"""A conversation must outlast the start of the load generator by far."""
_WINDOW_LEAST_S: Final = 60
"""The smallest value that the settings accept."""
_WIDTH_IN_A_PIPE: Final = 140
_MEMORY_MAX_MB: Final = 220.0
"""The most resident memory: 95 MB after a start, the page caches and newest events (70 MB at most), conversations, requests."""
_MEMORY: Final = "memory, MB"
_JUDGED: Final[Sequence[tuple[str, Callable[[Sample], float], float]]] = (
    (_MEMORY, lambda sample: sample.memory_mb, 1.0),
    ("descriptors", lambda sample: sample.descriptors, 5.0),
    ("threads", lambda sample: sample.threads, 2.0),
    ("changes that wait", lambda sample: sample.queue, 5.0),
    ("deliveries in memory", lambda sample: sample.held, 50.0),
    ("events not confirmed", lambda sample: sample.lag, 500.0),
    ("conversations in memory", lambda sample: sample.conversations, 10.0),
    ("database, MB", lambda sample: sample.database_mb, 2.0),
    ("p50, ms", lambda sample: sample.p50_ms, 2.0),
    ("p99, ms", lambda sample: sample.p99_ms, 20.0),
)
"""The judged series, with the growth over the second half that is within their normal variation."""


def settings(plan: Plan) -> dict[str, str]:
    """Return settings with periods short enough for the run."""
    window = str(max(_WINDOW_LEAST_S, round(plan.kept_s)))
    return {
        "allow_private_webhooks": "true",
        "bot_only_retention_s": str(max(1, round(plan.kept_s))),
        "event_window_s": window,
        "delivery_log_s": window,
        "stream_resume_window_s": window,
        "webhook_horizon_s": window,
        "retention_interval_s": str(max(1, round(plan.window_s))),
        "actor_idle_s": str(max(1, round(plan.window_s))),
    }


async def soak(server: Server, plan: Plan, length_s: float) -> tuple[list[Sample], Traffic]:
    """Load the server for `length_s`; return the samples and the traffic."""
    samples: list[Sample] = []
    traffic = Traffic(server, plan)
    async with trio.open_nursery() as nursery, _monitor(server) as monitor:
        await nursery.start(traffic.run)
        began = trio.current_time()
        while (at_s := trio.current_time() - began) < length_s:
            samples.append(await _sample(server, monitor, traffic, at_s))
            await trio.sleep(length_s / _SAMPLES)
        nursery.cancel_scope.cancel()
    return samples, traffic


def _monitor(server: Server) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", timeout=120, trust_env=False)


async def _sample(server: Server, monitor: httpx.AsyncClient, traffic: Traffic, at_s: float) -> Sample:
    seen = metrics((await monitor.get("/metrics")).text)
    proc, counts = Path(f"/proc/{server.process.pid}"), traffic.counts
    return Sample(
        at_s=at_s,
        memory_mb=processes.resident_mb(server.process),
        descriptors=len(list((proc / "fd").iterdir())),
        threads=len(list((proc / "task").iterdir())),
        queue=seen["deskwire_writer_waiting_jobs"],
        held=seen["deskwire_webhook_held_deliveries"],
        lag=seen["deskwire_stream_lag_events"],
        conversations=seen["deskwire_actors"],
        database_mb=seen["deskwire_storage_bytes"] / 1e6,
        p50_ms=counts.p50_ms,
        p99_ms=counts.p99_ms,
        posted=counts.posted,
        failed=counts.failed,
        webhooks=counts.webhooks.count,
        frames=counts.frames.count,
        feed=counts.feed.count,
    )


def judged(samples: Sequence[Sample]) -> Section:
    """Return each series with its trend."""
    at_s = [sample.at_s for sample in samples]
    rows: list[tuple[Cell, ...]] = []
    for name, value, least in _JUDGED:
        found = trend(at_s, [value(sample) for sample in samples], least)
        if name == _MEMORY and max(value(sample) for sample in samples) > _MEMORY_MAX_MB:
            found = replace(found, verdict="too much")
        cells = (None if math.isnan(each) else each for each in (found.mean, found.slope, found.margin))
        rows.append((name, *cells, found.verdict))
    columns = ("series", "mean", "slope an hour", "± (99 %)", "verdict")
    return Section("soak", "The second half of the run", columns, rows)


def drawn(title: str, samples: Sequence[Sample]) -> str:
    """Return the run as a picture."""

    def line(value: Callable[[Sample], float]) -> list[float]:
        return [value(sample) for sample in samples]

    panels = (
        Panel("Resident memory, MB", {"memory": line(lambda each: each.memory_mb)}),
        Panel(
            "Held by the process",
            {"descriptors": line(lambda each: each.descriptors), "threads": line(lambda each: each.threads)},
        ),
        Panel(
            "Waiting",
            {
                "changes for a commit": line(lambda each: each.queue),
                "deliveries in memory": line(lambda each: each.held),
                "events not confirmed": line(lambda each: each.lag),
            },
        ),
        Panel("Database on the disk, MB", {"database": line(lambda each: each.database_mb)}),
        Panel(
            "POST a message, ms",
            {"p50": line(lambda each: each.p50_ms), "p99": line(lambda each: each.p99_ms)},
        ),
    )
    return picture(title, [sample.at_s for sample in samples], panels)


@click.command()
@click.option("--minutes", type=click.FloatRange(min=0.05), default=60.0, show_default=True, help="How long.")
@click.option(
    "--rate", type=click.FloatRange(min=1), help="Messages a second; else half of what it can take."
)
@click.option("--out", type=click.Path(path_type=Path), default=_RESULTS, help="Folder of table and picture.")
@click.option("--data", type=click.Path(path_type=Path), help="Folder for the database; on the disk to load.")
def main(minutes: float, rate: float | None, out: Path, data: Path | None) -> None:
    """Load a server for a long time. The exit status is 1 if anything grows, is too much or was refused."""
    length_s = minutes * 60
    window_s = min(10.0, length_s / 6)
    kept_s = max(_KEPT_LEAST_S, 8 * window_s, min(900.0, length_s / 8))
    plan = Plan(window_s, kept_s, max(1.0, 1.5 * window_s), rate)
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_IN_A_PIPE)
    processes.allow_files()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("warning"))  # the receivers' own
    with (
        tempfile.TemporaryDirectory(prefix="deskwire-soak-", dir=data) as directory,
        deskwire(Path(directory) / "data", **settings(plan)) as server,
    ):
        samples, traffic = trio.run(soak, server, plan, length_s)
    section, counts = judged(samples), traffic.counts
    title = f"{minutes:g} minutes at {traffic.rate:,.0f} messages a second"
    out.mkdir(parents=True, exist_ok=True)
    write_csv(out / "soak.csv", samples)
    (out / "soak.svg").write_text(drawn(title, samples))
    said = (
        f"{title}: {counts.posted:,} posted, {counts.failed:,} of them refused; {counts.webhooks.count:,} webhooks, "
        f"{counts.frames.count:,} frames, {counts.feed.count:,} events in the feed, {counts.takeovers:,} takeovers"
    )
    (out / "soak.md").write_text(f"{machine_line(machine())}\n\n{said}.\n\n{markdown(section)}")
    show(console, section)
    console.print(said)
    growing = [str(row[0]) for row in section.rows if row[-1] in ("grows", "too much")]
    if counts.failed:
        console.print(f"the first refusal:\n{counts.first_failure}")
    console.print(f"grows, or is too much: {', '.join(growing)}" if growing else "nothing grows")
    console.print(f"saved as {out}/soak.csv, soak.svg and soak.md")
    sys.exit(1 if growing or counts.failed else 0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.soak")
