"""A project's customers: identity, conversations, memories and erasure."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from tests.model.commands import Answer, Request, good, refused
from tests.model.things import IDENTITY, JSON, Contact, exactly, shown
from tests.model.world import World


@dataclass(frozen=True)
class PutContact:
    """Create a contact, or replace its identity."""

    user: str
    identity: JSON

    def request(self, world: World) -> Request:
        return Request("PUT", f"/s2s/contacts/{self.user}", self.identity)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        identity = dict.fromkeys(IDENTITY) | self.identity
        good(answer, world.identify(self.user, identity, answer.body["id"]).whole)


@dataclass(frozen=True)
class Mark:
    """Set a contact's attributes (null removes one) and tags; no event of the contract announces the change."""

    user: str
    attributes: JSON
    tags: list[str]

    def request(self, world: World) -> Request:
        return Request(
            "PATCH", f"/s2s/contacts/{self.user}", {"attributes": self.attributes, "tags": self.tags}
        )

    def judge(self, world: World, answer: Answer) -> None:
        contact = known(world, self.user, answer)
        if contact is not None:
            both = contact.attributes | self.attributes
            attributes = {name: each for name, each in both.items() if each is not None}
            world.mark(contact, attributes, sorted({*self.tags}))
            good(answer, contact.whole)


@dataclass(frozen=True)
class Rename:
    """Change only the named fields of a contact's identity."""

    user: str
    identity: JSON

    def request(self, world: World) -> Request:
        return Request("PATCH", f"/s2s/contacts/{self.user}", self.identity)

    def judge(self, world: World, answer: Answer) -> None:
        contact = known(world, self.user, answer)
        if contact is not None:
            world.rename(contact, self.identity)
            good(answer, contact.whole)


@dataclass(frozen=True)
class Merge:
    """Merge a contact into another one; a repeated merge changes nothing."""

    user: str
    source: str

    def request(self, world: World) -> Request:
        return Request("POST", f"/s2s/contacts/{quote(self.user)}/merge", {"from": self.source})

    def judge(self, world: World, answer: Answer) -> None:
        target = known(world, self.user, answer)
        if target is None:
            return
        source, earlier = world.contacts.get(self.source), world.went(self.source)
        if source is not None and source is not target:
            world.merge(source, target)
        elif source is target or earlier is None or earlier.merged_into is not target:
            refused(answer, 422, "invalid_input")
            return
        good(answer, target.whole)


def known(world: World, user: str, answer: Answer) -> Contact | None:
    """Return the contact if it exists; otherwise the answer must be a refusal that names the merge target, if any."""
    contact, merged = world.contacts.get(user), world.went(user)
    if contact is None and merged is not None:
        refused(answer, 404, "contact_merged")
        into = merged.merged_into
        assert into is not None
        assert answer.body["mergedInto"] == {"id": into.id, "userId": into.user_id}
    elif contact is None:
        refused(answer, 404, "contact_not_found")
    return contact


@dataclass(frozen=True)
class Erase:
    """Erase a contact with everything that belongs to it."""

    user: str

    def request(self, world: World) -> Request:
        return Request("DELETE", f"/s2s/contacts/{self.user}")

    def judge(self, world: World, answer: Answer) -> None:
        contact = known(world, self.user, answer)
        if contact is not None:
            good(answer, {"id": contact.id, "deleted": True})
            world.erase(contact)


@dataclass(frozen=True)
class ListOf:
    """List the conversations that a contact sees."""

    user: str
    status: str | None = None

    def request(self, world: World) -> Request:
        query = "" if self.status is None else f"?status={self.status}"
        return Request("GET", f"/s2s/contacts/{quote(self.user)}/conversations{query}")

    def judge(self, world: World, answer: Answer) -> None:
        contact = known(world, self.user, answer)
        if contact is None:
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
class OfContact:
    """A command on a contact's memories."""

    user: str

    def path(self, world: World, name: str = "") -> str:
        contact = world.contacts.get(self.user)
        session = "con_01M3250V00PPPPPPPPPPPPPPPP" if contact is None else contact.id
        return f"/sessions/{session}/memory{name and '/'}{name}"


@dataclass(frozen=True)
class Remember(OfContact):
    """Store a memory; one with the same name is replaced."""

    name: str
    content: str

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world), {"name": self.name, "content": self.content}, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        assert answer.status == 200, answer
        known = contact.memory.get(self.name, {"id": answer.body["id"]})
        entry = {"id": known["id"], "name": self.name, "content": self.content, "description": None}
        contact.memory[self.name] = entry
        good(answer, {"ok": True, **entry})


@dataclass(frozen=True)
class Recall(OfContact):
    """List a contact's memories."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        assert answer.status == 200, answer
        told = {each["name"]: shown(each) for each in answer.body["items"]}
        assert exactly(told, contact.memory), answer


@dataclass(frozen=True)
class Forget(OfContact):
    """Delete a contact's memories."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        contact = world.contacts.get(self.user)
        if contact is None:
            refused(answer, 404, "session_not_found")
            return
        good(answer, {"ok": True, "consolidationEnqueued": False, "entries": len(contact.memory)})
        contact.memory.clear()
