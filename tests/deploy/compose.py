"""The compose files, with values for the variables that their user has to set."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.root import ROOT

DEPLOY: Final = ROOT / "docs/deploy"
FILES: Final = sorted(DEPLOY.glob("compose.*.yaml"))
_VARIABLE: Final = re.compile(r"(?<!\$)\$\{(\w+)(:\?|:-[^}]*)\}")
_FILLED: Final = "a-value-of-more-than-32-characters-0"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount: a path of the host or a volume, and the path at which a service sees it."""

    source: str
    target: str
    mode: str

    @property
    def path(self) -> Path | None:
        """Return the file on the host; None if it is a volume."""
        return (DEPLOY / self.source).resolve() if self.source.startswith(".") else None


class Compose:
    """A compose file whose variables have values."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.comment = "".join(
            line for line in path.read_text().splitlines(keepends=True) if line.startswith("#")
        )
        text = path.read_text()
        self.required = {name for name, how in _VARIABLE.findall(text) if how == ":?"}
        self.optional = {name for name, how in _VARIABLE.findall(text) if how != ":?"}
        filled = _VARIABLE.sub(lambda found: _FILLED if found[2] == ":?" else found[2][2:], text)
        self.whole: dict[str, Any] = json.loads(json.dumps(yaml.safe_load(filled)))
        self.services: dict[str, dict[str, Any]] = self.whole["services"]

    def ours(self) -> dict[str, dict[str, Any]]:
        """Return the services that run the image."""
        return {name: each for name, each in self.services.items() if each["image"] == "deskwire"}

    def mounts(self, service: str) -> list[Mount]:
        """Return the mounts of a service."""
        found = [each.split(":") for each in self.services[service].get("volumes", [])]
        return [Mount(each[0], each[1], ":".join(each[2:])) for each in found]

    def ports(self, service: str) -> list[tuple[str, str, str]]:
        """Return address, host port and container port of each published port."""
        found = [each.removesuffix("/udp").split(":") for each in self.services[service].get("ports", [])]
        return [(":".join(each[:-2]), each[-2], each[-1]) for each in found]
