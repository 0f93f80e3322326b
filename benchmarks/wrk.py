"""wrk (Debian's package of that name) as load generator: requests as fast as they are answered, each with its own body.

For a response that took long wrk adds those that its connection would have got in the meantime, so that one long wait counts
several times. `tail` uses the project's generator, which counts each response once.
"""

from __future__ import annotations

import json
import math
import resource
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from benchmarks import processes
from benchmarks.job import NUMBER, SENT, Call, Job, Outcome, full_size

_WARMED: Final = 1
"""Seconds of a warm-up, if one is wanted: the shortest run of wrk."""
_QUANTILES: Final = 1_000
_PATIENCE_S: Final = 30

_SCRIPT: Final = """
local ffi = require("ffi")
ffi.cdef("typedef struct { long sec; long nsec; } moment; int clock_gettime(int, moment *);")
local now, number = ffi.new("moment"), -1

local function sent()
  ffi.C.clock_gettime(1, now)
  return string.format("%010d%09d", tonumber(now.sec), tonumber(now.nsec))
end

local function replaced(text, mark, by)
  local at = text:find(mark, 1, true)
  while at do
    text = text:sub(1, at - 1) .. by .. text:sub(at + #mark)
    at = text:find(mark, at + #by, true)
  end
  return text
end

function request()
  number = number + 1
  local made = requests[number % #requests + 1]
  if timed then made = replaced(made, "@sent@", sent()) end
  if numbered then made = replaced(made, "@number@", string.format("%08d", number)) end
  return made
end

function done(summary, latency)
  local quantiles = {}
  for each = 1, quantiles_wanted do
    quantiles[each] = string.format("%.3f", latency:percentile(100 * (each - 0.5) / quantiles_wanted) / 1000)
  end
  quantiles[#quantiles + 1] = string.format("%.3f", latency.max / 1000)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"answers": %d, "us": %d, "refused": %d, "broken": %d, "quantiles": [%s]}\\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    table.concat(quantiles, ",")))
end
"""


def path() -> str | None:
    """Return the path of wrk, None if it is not installed."""
    return shutil.which("wrk")


def can_do(job: Job) -> bool:
    """Return whether wrk is installed and the job is long enough, because wrk counts in whole seconds."""
    plain = (
        job.rate is None
        and job.count is None
        and not job.keep
        and not job.until_cut
        and not (job.holds or job.drained)
    )
    return plain and job.wire == "http" and job.for_s >= 1 and path() is not None


def load(job: Job) -> Outcome:
    """Carry out the job. The warm-up is a separate run, on other connections."""
    with tempfile.TemporaryDirectory(prefix="deskwire-wrk-") as folder:
        script = Path(folder) / "requests.lua"
        script.write_text(_lua(job))
        answers = _run(job, script, _WARMED)["answers"] if job.warm_s >= _WARMED else 0
        began, cpu = time.perf_counter(), _children_s()
        found = _run(job, script, math.ceil(job.for_s))
        busy = (_children_s() - cpu) / (time.perf_counter() - began)
    if not found["answers"]:
        raise TimeoutError(f"nothing was answered within {math.ceil(job.for_s)} s")
    failures = [f"{found[kind]} {kind}" for kind in ("refused", "broken") if found[kind]]
    answers += found["answers"]
    rate = found["answers"] / found["us"] * 1e6
    return Outcome(rate, answers, found["quantiles"], failures, busy=busy, by="wrk")


def _run(job: Job, script: Path, for_s: int) -> dict[str, Any]:
    command = [str(path()), "-t1", f"-c{job.connections}", f"-d{for_s}s", f"--timeout={_PATIENCE_S}s"]
    command += ["-s", str(script), f"http://127.0.0.1:{job.port}"]
    process = processes.run(command, core=processes.LOAD)
    try:
        output, _ = process.communicate(timeout=for_s + 2 * _PATIENCE_S)
    finally:
        processes.stop(process)
    if process.returncode:
        raise RuntimeError(f"wrk ended with status {process.returncode}: {output}")
    found: dict[str, Any] = json.loads(output.splitlines()[-1])
    return found


def _lua(job: Job) -> str:
    made = [_request(job, call) for call in job.each()]
    settings = [
        f"quantiles_wanted = {_QUANTILES}",
        f"timed = {json.dumps(any(SENT in each for each in made))}",
        f"numbered = {json.dumps(any(NUMBER in each for each in made))}",
        f"requests = {{{', '.join(map(_quoted, made))}}}",
    ]
    return "\n".join((*settings, _SCRIPT))


def _request(job: Job, call: Call) -> str:
    return job.head(call, full_size(call.body)) + call.body


def _quoted(text: str) -> str:
    """Return a text as a Lua string, with escapes for bytes that are not plain."""
    plain = (
        chr(each) if 32 <= each < 127 and each not in b'"\\' else f"\\{each:03}" for each in text.encode()
    )
    return f'"{"".join(plain)}"'


def _children_s() -> float:
    """Return the processor time of ended child processes in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
