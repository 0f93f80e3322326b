"""Runs the tests of a module against each of its mutants, and lists those that no test noticed.

An unnoticed mutant that `table.py` does not explain makes the run fail. Without one, the figures are written to
tests/mutation/results.md, with a digest of the module.

Each mutant runs in a process of its own, forked from one that has most modules loaded; no file is changed.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType
from typing import IO, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.mutation.mutants import mutants
from tests.mutation.page import note
from tests.mutation.table import TABLE, Mutated

ROOT: Final = Path(__file__).parents[2]
_MEMORY: Final = 4 << 30
_EXAMPLES: Final = 60
"""Examples of each property: the same ones each time, without shrinking."""
_PYTEST: Final = ("-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
_PLUGINS: Final = (
    "-p",
    "pytest_trio.plugin",
    "-p",
    "_hypothesis_pytestplugin",
    "--hypothesis-profile=mutation",
    "-p",
    "pytest_timeout",
    "--timeout=0",  # the mutant's own limit is enough, and uses the same signal
)


class _Instead(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Imports `code` under the module's name; if there is none, the module cannot be imported."""

    def __init__(self, name: str, path: Path, code: CodeType | None) -> None:
        self._name, self._path, self._code = name, path, code

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=str(self._path))

    def get_code(self, fullname: str) -> CodeType:
        if self._code is None:
            raise ImportError
        return self._code

    def get_source(self, fullname: str) -> str | None:
        return None


def main(chosen: Sequence[str]) -> int:
    """Run modules whose path contains a word, or all; return 0 if every mutant was noticed or is explained."""
    os.chdir(ROOT)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    settings.register_profile(
        "mutation",
        deadline=None,
        database=None,
        derandomize=True,
        max_examples=_EXAMPLES,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    rows = [each for each in TABLE if not chosen or any(word in each.path for word in chosen)]
    return max([_in_a_fork(partial(_run, row)) for row in rows], default=0)


def _run(row: Mutated) -> int:
    """Print the result of each mutant; return 1 if the module's tests fail without a mutant, or one is unexplained."""
    path = ROOT / row.path
    name = ".".join(Path(row.path).with_suffix("").parts[1:])
    _load_ahead(row, name)
    began = time.monotonic()
    if _in_a_fork(partial(_test, row)):
        print(f"{row.path}: its tests fail as it is")
        return 1
    limit_s = 10 + 5 * (time.monotonic() - began)
    made = survived = unexplained = 0
    source = path.read_text()
    lines = source.splitlines()
    for mutant in mutants(source, str(path), row.only):
        made += 1
        instead = _Instead(name, path, mutant.code)
        if not _in_a_fork(partial(_test, row, instead), limit_s):
            survived += 1
            explained = row.explains(lines[mutant.line - 1], mutant.was, mutant.became)
            unexplained += not explained
            mark = "explained" if explained else "UNNOTICED"
            print(f"{row.path}:{mutant.line}: {mutant.was}  ->  {mutant.became}  {mark}", flush=True)
    print(
        f"{row.path}: {made} mutants, {made - survived} noticed, {survived} left, {unexplained} not explained",
        flush=True,
    )
    if not unexplained and path.read_text() == source:
        note(row, made, survived)
    return int(unexplained > 0)


def _load_ahead(row: Mutated, name: str) -> None:
    """Import the modules that the tests need, except those that import `name`, so that no mutant has to load them."""
    with tempfile.TemporaryFile("w+") as found:
        _in_a_fork(partial(_test, row, found=found))
        found.seek(0)
        needed = found.read().split()
    missing = _Instead(name, ROOT / row.path, None)
    sys.meta_path.insert(0, missing)
    for each in needed:
        with contextlib.suppress(ImportError):
            importlib.import_module(each)
    sys.meta_path.remove(missing)


def _in_a_fork(work: Callable[[], int], limit_s: float = 0) -> int:
    """Return the result of `work` in a forked process; not 0 if it raised or exceeded the time limit."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    code = 1
    try:
        signal.setitimer(signal.ITIMER_REAL, limit_s)  # its signal ends the process
        code = min(1, work())
    finally:
        sys.stdout.flush()
        os._exit(code)


def _test(row: Mutated, instead: _Instead | None = None, found: IO[str] | None = None) -> int:
    """Run the tests of a row silently, and write the names of the modules they have loaded to `found`."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    if instead is not None:
        sys.meta_path.insert(0, instead)
    code = int(pytest.main([*_PYTEST, *_PLUGINS, *row.tests]))
    if found is not None:
        found.write(" ".join(each for each in sys.modules if each.split(".")[0] not in ("tests", "__main__")))
        found.flush()
    return code


if __name__ == "__main__":
    raise SystemExit(min(1, main(sys.argv[1:])))
