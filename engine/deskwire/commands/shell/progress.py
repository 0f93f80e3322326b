"""The progress of a command, on one line of a terminal that is gone at its end; on a pipe nothing is written."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from deskwire.engine.core.values import ProgressReporter, no_progress


@contextmanager
def shown_progress(*, beside: bool = False) -> Iterator[ProgressReporter]:
    """Yield what takes each step, with how much of it is done; it does nothing unless stderr is a terminal.

    Args:
        beside: whether something is written to stdout meanwhile: then nothing is shown if that is a terminal, too.
    """
    if not sys.stderr.isatty() or (beside and sys.stdout.isatty()):
        yield no_progress
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        SpinnerColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("", total=None)
        step = ""

        def tell(name: str, done: int = 0, total: int | None = None) -> None:
            nonlocal step
            if name != step:
                step = name
                progress.reset(task, description=name)
            progress.update(task, completed=done, total=total)

        yield tell
