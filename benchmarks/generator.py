"""Load from a process of its own: wrk where it is installed and can do the job, else the generator of this project."""

from __future__ import annotations

import json

from benchmarks import processes, wrk
from benchmarks.job import Job, Outcome


def load(job: Job) -> Outcome:
    """Carry out a job. Raises RuntimeError if anything was answered but a success."""
    outcome = wrk.load(job) if wrk.can_do(job) else _own(job)
    if outcome.failures:
        raise RuntimeError(f"{len(outcome.failures)} requests failed, the first with:\n{outcome.failures[0]}")
    return outcome


def name() -> str:
    """The generator of the closed loops, in a word."""
    return "wrk" if wrk.path() else "the project's own generator"


def _own(job: Job) -> Outcome:
    process = processes.start("benchmarks.load", core=processes.LOAD)
    try:
        output, _ = process.communicate(job.encode())
    finally:
        processes.stop(process)
    if process.returncode:
        raise RuntimeError(f"the load generator ended with status {process.returncode}")
    return Outcome(**json.loads(output))
