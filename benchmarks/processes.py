"""Processes pinned to cores: the measured server on one, the measuring processes on another."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

_STOP_S: Final = 20.0
_FILES: Final = 20_000
_CORES: Final = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
SERVER: Final = 0
"""The first core that this process may use, for the servers."""
LOAD: Final = 1


@contextmanager
def on_core(number: int | None) -> Iterator[None]:
    """Pin processes started within the block, with all threads, to a core, if the system supports it; None for any."""
    if number is None or sys.platform != "linux" or len(_CORES) < 2:
        yield
        return
    os.sched_setaffinity(0, {_CORES[number]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, _CORES)


def start(
    module: str, *arguments: str, core: int | None, settings: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start `python -m module` with pipes to its stdin and stdout; the log of a server is discarded."""
    command = [sys.executable, "-m", module, *arguments]
    return run(command, core=core, settings=settings, quiet=not module.startswith("benchmarks."))


def run(
    command: Sequence[str], *, core: int | None, settings: dict[str, str] | None = None, quiet: bool = False
) -> subprocess.Popen[str]:
    """Start a program with pipes to its stdin and stdout; its stderr is discarded if `quiet`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DESKWIRE_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is not compiled at each start
    kept["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    with on_core(core):
        return subprocess.Popen(
            command,
            env=kept | (settings or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            text=True,
        )


def answer(module: str, question: str, *, core: int) -> str:
    """Return the output of `python -m module` for a question on its stdin. Raises RuntimeError if it fails."""
    process = start(module, core=core)
    try:
        output, _ = process.communicate(question)
    finally:
        stop(process)
    if process.returncode:
        raise RuntimeError(f"{module} ended with status {process.returncode}")
    return output


def allow_files() -> None:
    """Raise the limit of open files, for this process and those it starts, for many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < _FILES:
        wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def stop(process: subprocess.Popen[str]) -> None:
    """Stop a process gracefully, or kill it if that takes too long."""
    process.terminate()
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()


def pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Return the stdin and stdout of a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def line(process: subprocess.Popen[str], mark: str = "") -> str:
    """Return the next line of its output that contains `mark`. Raises RuntimeError if the output ends before."""
    for each in pipes(process)[1]:
        if mark in each:
            return each.strip()
    raise RuntimeError(f"{process.args!r} has ended with status {process.wait()}")


def tell(process: subprocess.Popen[str], words: str) -> None:
    """Write a line to a process."""
    stdin, _ = pipes(process)
    stdin.write(words + "\n")
    stdin.flush()


def ask(process: subprocess.Popen[str], question: str) -> str:
    """Write a line to a process, and return the line that it writes back."""
    tell(process, question)
    return line(process)


def cpu_s(process: subprocess.Popen[str]) -> float | None:
    """Return the processor time of a process in seconds, which does not depend on other load; Linux only."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return None
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def resident_mb(process: subprocess.Popen[str]) -> float:
    """Return the resident memory of a process, in MB (10^6 bytes)."""
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        lines: Sequence[str] = status.read_text().splitlines()
        kib = next(each.split()[1] for each in lines if each.startswith("VmRSS:"))
    else:
        command = ["ps", "-o", "rss=", "-p", str(process.pid)]
        kib = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(kib) * 1024 / 1e6
