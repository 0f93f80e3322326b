"""openapi-generator, the compilers for the code that it makes, and their paths."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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
    "go": ("--additional-properties=packageName=deskwire,useOneOfDiscriminatorLookup=true",),
    "java": (
        "--library=native",
        "--additional-properties=containerDefaultToNull=true",
    ),
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


COMPILER_OPTIONS: Final[Mapping[str, Any]] = {
    "strict": True,
    "target": "es2022",
    "module": "nodenext",
    "moduleResolution": "nodenext",
    "skipLibCheck": True,
    "typeRoots": [str(TOOLS / "node_modules/@types")],
    "types": ["node"],
    "outDir": "built",
}
"""How a user's project compiles the TypeScript client."""

_GO_FILE: Final = """package main

import client "github.com/GIT_USER_ID/GIT_REPO_ID"

// The models of events, which Go can't find by their names.
var models = map[string]func() any{{
{lines}
}}
"""


@dataclass
class Generator:
    """Makes a client for a language, and compiles it with the programs of tests/clients/jobs; each once."""

    directory: Path

    def client(self, language: str) -> Path:
        """Return the folder with the client; fail with the generator's output if it can't make it."""
        target = self.directory / language
        if not target.exists():
            succeed(self._command(language), self.directory)
        return target

    def typescript(self) -> Path:
        """Return the folder with the compiled TypeScript client and `job.js`."""
        project = self.directory / "typescript"
        if not project.exists():
            shutil.copytree(self.client("typescript-fetch"), project / "client")
            shutil.copy(HERE / "jobs/job.ts", project)
            (project / "package.json").write_text('{"type": "module"}')
            config = {"compilerOptions": COMPILER_OPTIONS, "files": ["job.ts"]}
            (project / "tsconfig.json").write_text(json.dumps(config))
            succeed([BINARIES / "tsc", "-p", "."], project)
        return project / "built"

    def go_program(self, models: Iterable[str]) -> Path:
        """Return the program that calls every operation with the Go client.

        Args:
            models: the names of the models of events.
        """
        program = self.directory / "every-operation"
        if not program.exists():
            client = self.client("go")
            folder = client / "cmd/every-operation"
            shutil.copytree(HERE / "jobs/go", folder)
            lines = "\n".join(f'\t"{each}": func() any {{ return new(client.{each}) }},' for each in models)
            (folder / "models.go").write_text(_GO_FILE.format(lines=lines))
            # Nothing is fetched: the one module that the client needs is replaced.
            settings = {"GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOTOOLCHAIN": "local", "GOSUMDB": "off"}
            environment = {**settings, "GOCACHE": str(self.directory / "go-cache")}
            stub = f"gopkg.in/validator.v2={HERE / 'stubs/go'}"
            succeed([go(), "mod", "edit", "-replace", stub], client, environment)
            # Type checks count, not speed.
            build: list[str | Path] = [
                go(),
                "build",
                "-gcflags=all=-N -l",
                "-o",
                program,
                "./cmd/every-operation",
            ]
            succeed(build, client, environment)
        return program

    def java_classes(self) -> str:
        """Return the class path of the Java client and of the program that calls every operation."""
        classes = self.directory / "java-classes"
        if not classes.exists():
            folders = (self.client("java") / "src/main/java", HERE / "stubs/java", HERE / "jobs/java")
            sources = [each for folder in folders for each in folder.rglob("*.java")]
            (self.directory / "java-sources").write_text("\n".join(map(str, sources)))
            options = ["-nowarn", "-parameters", "-proc:none", "-Xmaxerrs", "1000"]
            # The generator's own jar has the libraries for JSON that the client needs, too.
            command: list[str | Path] = ["javac", *options, "-cp", jar(), "-d", classes, "@java-sources"]
            succeed(command, self.directory)
        return f"{classes}{os.pathsep}{jar()}"

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
