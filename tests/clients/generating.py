"""openapi-generator, the compilers for the code that it makes, and their paths."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.api.openapi_check import described

HERE: Final = Path(__file__).parent
TOOLS: Final = HERE / "tools"
BINARIES: Final = TOOLS / "node_modules/.bin"
PACKAGE: Final = "deskwire_client"
"""The name of the generated package for Python."""

_PYTHON_PACKAGES: Final = ("openapi_generator_cli", "go", "dateutil", "urllib3")
_PROGRAMS: Final = ("java", "javac", "node")
_LIMIT_S: Final = 480.0
_QUIET: Final = {"REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "python": (f"--additional-properties=packageName={PACKAGE}",),
    "typescript-fetch": ("--additional-properties=importFileExtension=.js",),
    "go": ("--additional-properties=packageName=deskwire,enumClassPrefix=true",),
    "java": ("--library=native", "--additional-properties=openApiNullable=false,useJakartaEe=false"),
}
"""The generators, and the options that a user would give each."""


def missing() -> list[str]:
    """Return what the machine lacks to make and compile the clients."""
    packages = [each for each in _PYTHON_PACKAGES if importlib.util.find_spec(each) is None]
    programs = [each for each in _PROGRAMS if shutil.which(each) is None]
    tools = [] if BINARIES.is_dir() else ["tests/clients/tools/node_modules"]
    return [*packages, *programs, *tools]


def _inside(package: str, path: str) -> Path:
    """Return a file of an installed Python package."""
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / path


def jar() -> Path:
    """Return the generator, which is a Java program with all its libraries."""
    return _inside("openapi_generator_cli", "openapi-generator.jar")


def go() -> Path:
    """Return the compiler of Go."""
    return _inside("go", "bin/go")


def run(
    command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with more of the environment; its output is text, and its usage reports are off."""
    return subprocess.run(
        [str(each) for each in command],
        cwd=directory,
        env={**os.environ, **_QUIET, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )


def succeed(
    command: Sequence[str | Path], directory: Path, environment: Mapping[str, str] | None = None
) -> str:
    """Run a program that has to succeed; fail with its output if it does not."""
    done = run(command, directory, environment)
    assert done.returncode == 0, f"{command[0]} ends with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass
class Generator:
    """Makes a client for a language, once."""

    directory: Path

    def client(self, language: str) -> Path:
        """Return the folder with the client; fail with the generator's output if it can't make it."""
        target = self.directory / language
        if not target.exists():
            succeed(self._command(language), self.directory)
        return target

    def _command(self, language: str) -> list[str | Path]:
        source = self.directory / "openapi.json"
        source.write_text(json.dumps(described()))
        only = "apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false"
        command: list[str | Path] = [
            "java",
            "-XX:TieredStopAtLevel=1",
            "-jar",
            jar(),
            "generate",
            "-i",
            source,
        ]
        return [*command, "-g", language, "-o", language, "--global-property", only, *OPTIONS[language]]
