"""Load from a separate process: wrk if it is installed and can do the job, else the generator of this project."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import replace

from benchmarks import processes, wrk
from benchmarks.job import BEGUN, Job, Outcome


def load(job: Job, *, own: bool = False) -> Outcome:
    """Carry out a job, with the project's own generator if `own`. Raises RuntimeError if any response is not a success."""
    outcome = wrk.load(job) if not own and wrk.can_do(job) else carried_out(job)
    if outcome.failures:
        raise RuntimeError(f"{len(outcome.failures)} requests failed, the first with:\n{outcome.failures[0]}")
    return outcome


def load_until_killed(job: Job, server: subprocess.Popen[str], after_s: float) -> Outcome:
    """Carry out a job until the server is killed; `after_s` counts from when the first request was sent."""
    process = processes.start("benchmarks.load", core=processes.LOAD)
    try:
        stdin, stdout = processes.pipes(process)
        stdin.write(replace(job, until_cut=True).encode())
        stdin.close()
        processes.line(process, BEGUN)
        time.sleep(after_s)
        server.kill()
        return Outcome(**json.loads(stdout.read()))
    finally:
        processes.stop(process)


def name() -> str:
    """Return the name of the generator of closed loops."""
    return "wrk" if wrk.path() else "the project's own generator"


def carried_out(job: Job) -> Outcome:
    """Carry out a job with the project's own generator, whatever the responses are. Raises RuntimeError if that fails."""
    return Outcome(**json.loads(processes.answer("benchmarks.load", job.encode(), core=processes.LOAD)))
