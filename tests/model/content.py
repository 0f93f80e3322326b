"""Translatable content: entries by language (contract 2.8, 4.6)."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.commands import Answer, Request, good, refused
from tests.model.things import JSON
from tests.model.world import World


@dataclass(frozen=True)
class OfEntry:
    """A command on an entry in a language; None stands for the project's primary language, English."""

    entry: str
    language: str | None

    @property
    def path(self) -> str:
        return f"/translations/entries/{self.entry}"

    def view(self, world: World, language: str) -> JSON:
        """Return the entry as shown in a language that it has."""
        kind, _, identifier = self.entry.partition(":")
        known = world.entries[self.entry]
        shape: JSON = {"entryId": self.entry, "type": kind, "id": identifier, "language": language}
        return {**shape, "languages": sorted(known), "fields": known[language]}


@dataclass(frozen=True)
class Translate(OfEntry):
    """Store an entry's content in a language; the entry is created if it is new."""

    title: str

    def request(self, world: World) -> Request:
        body = {"language": self.language or "en", "fields": {"title": self.title}}
        return Request("PUT", self.path, body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        language = self.language or "en"
        world.entries.setdefault(self.entry, {})[language] = {"title": self.title}
        good(answer, self.view(world, language))


@dataclass(frozen=True)
class Content(OfEntry):
    """Read an entry."""

    def request(self, world: World) -> Request:
        query = "" if self.language is None else f"?language={self.language}"
        return Request("GET", f"{self.path}{query}", agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        language = self.language or "en"
        if self.entry not in world.entries:
            refused(answer, 404, "entry_not_found")
        elif language not in world.entries[self.entry]:
            refused(answer, 404, "translation_not_found")
        else:
            good(answer, self.view(world, language))
