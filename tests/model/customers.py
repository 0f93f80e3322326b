"""What a backend does about its customers: who they are, their conversations, what they say of a survey; erasure."""

from __future__ import annotations

from dataclasses import dataclass

from .commands import Answer, Request, good, refused
from .world import IDENTITY, JSON, World, exactly, shown


@dataclass(frozen=True)
class PutContact:
    """Make a contact, or replace its identity."""

    user: str
    identity: JSON

    def request(self, world: World) -> Request:
        return Request("PUT", f"/s2s/contacts/{self.user}", self.identity)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        identity = dict.fromkeys(IDENTITY) | self.identity
        good(answer, world.identify(self.user, identity, answer.body["id"], alone=True).view)


@dataclass(frozen=True)
class Erase:
    """Erase a contact with everything that belongs to it."""

    user: str

    def request(self, world: World) -> Request:
        return Request("DELETE", f"/s2s/contacts/{self.user}")

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "contact_not_found")
        else:
            good(answer, {"id": contact.id, "deleted": True})
            world.erase(contact)


@dataclass(frozen=True)
class ListOf:
    """List a contact's conversations: those that it sees."""

    user: str
    status: str | None = None

    def request(self, world: World) -> Request:
        query = "" if self.status is None else f"?status={self.status}"
        return Request("GET", f"/s2s/contacts/{self.user}/conversations{query}")

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "contact_not_found")
            return
        seen = [
            world.shown(each)
            for each in world.conversations
            if each.contact is contact
            and each.visible
            and not each.gone
            and self.status in (None, each.fields["status"])
        ]
        assert answer.status == 200, answer
        told = sorted(answer.body["items"], key=lambda each: str(each["id"]))
        assert exactly(shown(sorted(seen, key=lambda each: str(each["id"]))), shown(told)), (seen, told)


@dataclass(frozen=True)
class Respond:
    """Answer the survey for a customer, for nobody if there is no such one."""

    user: str
    score: int

    def request(self, world: World) -> Request:
        contact: JSON = {"contact": {"userId": self.user}} if self.user in world.contacts else {}
        return Request("POST", f"/s2s/surveys/{world.survey}/responses", {"answers": self.answers, **contact})

    @property
    def answers(self) -> JSON:
        """What is answered to the survey's questions."""
        return {"score": self.score, "why": "slow", "plan": "pro"}

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        contact = {"userId": self.user} if self.user in world.contacts else None
        said = (
            answer.body["surveyId"],
            answer.body["version"],
            answer.body["contact"],
            answer.body["answers"],
        )
        assert said == (world.survey, 1, contact, self.answers), answer
        world.responses[answer.body["id"]] = self.user if contact else None


@dataclass(frozen=True)
class Responses:
    """List what was answered."""

    def request(self, world: World) -> Request:
        return Request("GET", f"/engagement/surveys/{world.survey}/responses", agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        told = {each["id"]: each["contact"] and each["contact"]["userId"] for each in answer.body["items"]}
        assert told == world.responses, answer
