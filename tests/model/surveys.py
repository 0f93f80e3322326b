"""Surveys: create, change, publish in versions, answer, delete (contract 4.1; decisions 7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.model.commands import Answer, Request, good, stopped
from tests.model.things import JSON, Survey, exactly, shown
from tests.model.world import World
from tests.support.api.surveys import DEFINITION

NO_SURVEY: Final = "srv_01M3250V00PPPPPPPPPPPPPPPP"
SHORT: Final = {**DEFINITION, "questions": DEFINITION["questions"][:2], "logic": []}
DEFINITIONS: Final[Mapping[str, JSON]] = {
    "usual": DEFINITION,
    "short": SHORT,
    "nameless": {**DEFINITION, "title": ""},
    "backwards": {**DEFINITION, "logic": [{"from": "why", "to": "score"}]},
}
"""Definitions to publish, valid and invalid. In the usual one a score of 9 skips `why` and leads to `plan`."""
WRONG: Final[Mapping[str, tuple[str, str]]] = {
    "nameless": ("/title", "empty"),
    "backwards": ("/logic/0/to", "jump_backwards"),
}
"""The pointer and code of the error in each invalid definition."""
INVALID: Final = (422, "invalid_input")


@dataclass(frozen=True)
class MakeSurvey:
    """Create a survey."""

    name: str
    definition: str = "usual"

    def request(self, world: World) -> Request:
        body = {"name": self.name, "definition": DEFINITIONS[self.definition]}
        return Request("POST", "/engagement/surveys", body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        if not stopped(answer, *([INVALID] if self.definition in WRONG else [])):
            assert answer.status == 200, answer
            made = Survey(answer.body["id"], self.name, [DEFINITIONS[self.definition]])
            good(answer, made.view)
            world.surveys.append(made)


@dataclass(frozen=True)
class ListSurveys:
    """List the surveys, without their definitions."""

    status: str | None = None
    name: str | None = None

    def request(self, world: World) -> Request:
        given = {"status": self.status, "q": self.name}
        query = "&".join(f"{name}={value}" for name, value in given.items() if value is not None)
        return Request("GET", f"/engagement/surveys?{query}", agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        told = {each["id"]: shown(each) for each in answer.body["items"]}
        wanted = {
            each.id: each.summary
            for each in world.surveys
            if not each.gone
            and self.status in (None, each.status)
            and (self.name is None or self.name.lower() in each.name.lower())
        }
        assert exactly(wanted, told), (wanted, answer)


@dataclass(frozen=True)
class OnSurvey:
    """A command on the survey at this index, or on an unknown one if the index is not in use."""

    at: int

    def target(self, world: World) -> Survey | None:
        """Return the survey, also a deleted one; None if it never existed."""
        return world.surveys[self.at] if 0 <= self.at < len(world.surveys) else None

    def name(self, world: World) -> str:
        """Return the survey's id."""
        found = self.target(world)
        return NO_SURVEY if found is None else found.id

    def path(self, world: World, tail: str = "") -> str:
        """Return the survey's path for agents."""
        return f"/engagement/surveys/{self.name(world)}{tail}"

    def reasons(self, found: Survey | None) -> Iterator[tuple[int, str]]:
        """Yield each refusal that the call may get."""
        if found is None or found.gone:
            yield 404, "survey_not_found"

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if not stopped(answer, *self.reasons(found)):
            assert found is not None
            self.carry_out(world, found, answer)

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        """Apply the command to a survey that exists; the default changes nothing."""
        good(answer, found.view)


@dataclass(frozen=True)
class LookAtSurvey(OnSurvey):
    """Fetch a survey, as an agent or to show it to a customer."""

    agent: bool = True

    def request(self, world: World) -> Request:
        path = self.path(world) if self.agent else f"/s2s/surveys/{self.name(world)}"
        return Request("GET", path, agent=self.agent)


@dataclass(frozen=True)
class PatchSurvey(OnSurvey):
    """Rename, close or reopen a survey; its definition stays the same."""

    fields: JSON

    def request(self, world: World) -> Request:
        return Request("PATCH", self.path(world), self.fields, agent=True)

    def reasons(self, found: Survey | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        status = self.fields.get("status", "OPEN")
        if (
            "definition" in self.fields
            or status not in ("OPEN", "CLOSED")
            or not self.fields.get("name", "x")
        ):
            yield INVALID

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        found.name = self.fields.get("name", found.name)
        found.status = self.fields.get("status", found.status)
        good(answer, found.view)


@dataclass(frozen=True)
class RemoveSurvey(OnSurvey):
    """Delete the survey with all that belongs to it."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        found.gone = True
        for response in found.responses:
            world.forget(response)
            world.fading.add(response)
        found.responses = {}
        world.extend("survey.deleted", {"survey": {"id": found.id}})
        good(answer, {"id": found.id, "deleted": True})


@dataclass(frozen=True)
class Publish(OnSurvey):
    """Publish another definition as the next version; the published one creates no version."""

    definition: str

    def request(self, world: World) -> Request:
        body = {"definition": DEFINITIONS[self.definition]}
        return Request("POST", self.path(world, "/versions"), body, agent=True)

    def reasons(self, found: Survey | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        if self.definition in WRONG:
            yield INVALID

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        definition = DEFINITIONS[self.definition]
        if found.versions[-1] != definition:
            found.versions.append(definition)
        good(answer, {**found.version(len(found.versions)), "definition": definition})


@dataclass(frozen=True)
class Versions(OnSurvey):
    """List the survey's versions, newest first."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, "/versions"), agent=True)

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        newest = range(len(found.versions), 0, -1)
        good(answer, {"items": [found.version(number) for number in newest], "nextCursor": None})


@dataclass(frozen=True)
class Version(OnSurvey):
    """Fetch one of the survey's versions."""

    number: int

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, f"/versions/{self.number}"), agent=True)

    def reasons(self, found: Survey | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        if found is not None and not 1 <= self.number <= len(found.versions):
            yield 404, "survey_version_not_found"

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        good(answer, {**found.version(self.number), "definition": found.versions[self.number - 1]})


@dataclass(frozen=True)
class Validate(OnSurvey):
    """Validate a definition: 200 even if it is invalid, and nothing changes."""

    definition: str

    def request(self, world: World) -> Request:
        body = {"definition": DEFINITIONS[self.definition]}
        return Request("POST", self.path(world, "/validate"), body, agent=True)

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        assert answer.status == 200, answer
        wrong = [WRONG[self.definition]] if self.definition in WRONG else []
        assert answer.body["ok"] is not bool(wrong), answer
        assert [(each["path"], each["code"]) for each in answer.body["errors"]] == wrong, answer


@dataclass(frozen=True)
class Respond(OnSurvey):
    """Answer a version of the survey (None: the published one), for a customer if the user id is known."""

    user: str
    answers: JSON
    version: int | None = None

    def request(self, world: World) -> Request:
        body: JSON = {"answers": self.answers} | ({} if self.version is None else {"version": self.version})
        body |= {"contact": {"userId": self.user}} if self.user in world.contacts else {}
        return Request("POST", f"/s2s/surveys/{self.name(world)}/responses", body)

    def reasons(self, found: Survey | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        if found is not None:
            if found.status == "CLOSED":
                yield 409, "survey_closed"
            if (self.version or 1) > len(found.versions) or not fits(
                found.versions[(self.version or 0) - 1], self.answers
            ):
                yield INVALID

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        assert answer.status == 200, answer
        response = {
            "id": answer.body["id"],
            "surveyId": found.id,
            "version": self.version or len(found.versions),
            "contact": {"userId": self.user} if self.user in world.contacts else None,
            "language": "en",
            "answers": self.answers,
        }
        good(answer, response)
        found.responses[response["id"]] = response
        survey = {"id": found.id, "version": response["version"]}
        data = {"survey": survey, "response": dict(response)}
        world.extend("survey.response.created", data, response["id"])


def fits(definition: JSON, answers: Mapping[str, Any]) -> bool:
    """Return whether the answers fit the questions that are asked; in the usual definition a score of 9 skips `why`."""
    usual = definition == DEFINITIONS["usual"]
    known = {question["id"] for question in definition["questions"]}
    past = usual and answers.get("score", 0) >= 9 and "why" in answers
    return 0 <= answers.get("score", -1) <= 10 and answers.keys() <= known and not past


@dataclass(frozen=True)
class Responses(OnSurvey):
    """List the responses to the survey, or to one of its versions."""

    version: int | None = None

    def request(self, world: World) -> Request:
        query = "" if self.version is None else f"?version={self.version}"
        return Request("GET", self.path(world, f"/responses{query}"), agent=True)

    def carry_out(self, world: World, found: Survey, answer: Answer) -> None:
        assert answer.status == 200, answer
        told = {each["id"]: shown(each) for each in answer.body["items"]}
        wanted = {
            each: said for each, said in found.responses.items() if self.version in (None, said["version"])
        }
        assert exactly(wanted, told), (wanted, answer)
