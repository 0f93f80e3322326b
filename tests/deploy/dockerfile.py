"""The Dockerfile's instructions, and the files that are sent to its build."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

from tests.support.root import ROOT

DOCKERFILE: Final = ROOT / "docs/deploy/Dockerfile"
IGNORED: Final = ROOT / ".dockerignore"
_INSTRUCTION: Final = re.compile(r"^([A-Z]+) (.*)$")


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage: its name ("" if it has none) and its instructions in order."""

    name: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def every(self, name: str) -> list[str]:
        """Return the arguments of each instruction with that name."""
        return [rest for each, rest in self.instructions if each == name]

    def only(self, name: str) -> str:
        """Return the arguments of the only instruction with that name."""
        (rest,) = self.every(name)
        return rest

    def command(self, name: str) -> list[str]:
        """Return the words of an instruction with a JSON array, such as ENTRYPOINT, CMD and HEALTHCHECK."""
        words: list[str] = json.loads(self.only(name)[self.only(name).index("[") :])
        return words

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of ENV together with the base image's."""
        found = dict(given)
        for each in self.every("ENV"):
            found |= dict(Template(pair).safe_substitute(found).split("=", 1) for pair in shlex.split(each))
        return found


def stages() -> list[Stage]:
    """Return the stages of the Dockerfile. The instructions before the first FROM are an unnamed stage."""
    lines = [line for line in DOCKERFILE.read_text().splitlines() if not line.lstrip().startswith("#")]
    found = [Stage("")]
    for line in re.sub(r"\\\n\s*", " ", "\n".join(lines)).splitlines():
        if not line.strip():
            continue
        instruction = _INSTRUCTION.match(line)
        assert instruction is not None, line
        if instruction[1] == "FROM":
            found.append(Stage(instruction[2].partition(" AS ")[2]))
        found[-1].instructions.append((instruction[1], instruction[2]))
    return found


def defaults(stage: Stage) -> dict[str, str]:
    """Return the build arguments with their defaults."""
    return dict(shlex.split(each)[0].split("=", 1) for each in stage.every("ARG"))


def sent(paths: Iterable[Path]) -> list[Path]:
    """Return the paths, relative to the root, that .dockerignore lets into a build: the last matching pattern decides."""
    rules = [
        (line.startswith("!"), _pattern(line.removeprefix("!")))
        for line in IGNORED.read_text().splitlines()
        if line and not line.startswith("#")
    ]

    def let_in(path: Path) -> bool:
        names = [str(each) for each in (path, *path.parents)]
        return [let for let, rule in rules if any(map(rule.fullmatch, names))][-1:] in ([], [True])

    return [path for path in paths if let_in(path)]


def _pattern(text: str) -> re.Pattern[str]:
    """Return the expression for a pattern, in which `**/` stands for any number of folders and `*` stays in one."""
    return re.compile(re.escape(text).replace(r"\*\*/", "(?:.*/)?").replace(r"\*", "[^/]*"))
