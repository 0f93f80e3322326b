"""Webhook endpoints: register, change, disable, remove, and their deliveries (contract 4.5, 6.2; decisions 6)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.model.commands import Answer, Request, good, stopped
from tests.model.things import JSON, Endpoint, exactly, shown
from tests.model.world import World

NO_EVENT: Final = "conversation.exploded"
NO_CATCH_UP: Final = "sometimes"
NOTES: Final = "note.created"
"""A type that an endpoint may name only if it may receive internal events."""
NO_WAY: Final = "#"
"""As the way of a URL: a fragment, which is refused."""


def good_endpoint(told: JSON, wanted: JSON) -> None:
    """Assert that the endpoint is shown with these fields, except for its last delivery."""
    told = {name: value for name, value in told.items() if name != "lastDelivery"}
    assert exactly(shown(wanted), shown(told)), (wanted, told)


@dataclass(frozen=True)
class AddEndpoint:
    """Register an endpoint; a sixth one is refused."""

    events: tuple[str, ...] = ()
    catch_up: str | None = None
    internal: bool = False

    def request(self, world: World) -> Request:
        url = world.url(len(world.endpoints), "a")
        more: JSON = {} if self.catch_up is None else {"catchUp": self.catch_up}
        more |= {"internal": True} if self.internal else {}
        return Request("POST", "/s2s/webhooks", {"url": url, "events": list(self.events), **more})

    def judge(self, world: World, answer: Answer) -> None:
        bad = NO_EVENT in self.events or self.catch_up == NO_CATCH_UP
        bad = bad or (NOTES in self.events and not self.internal)
        reasons = [(422, "invalid_input")] if bad else []
        if sum(not each.gone for each in world.endpoints) == 5:
            reasons.append((409, "webhook_limit_reached"))
        if not stopped(answer, *reasons):
            assert answer.status == 200, answer
            secret = answer.body["secret"]
            assert secret.startswith("whsec_")
            fields = {
                "events": sorted(self.events),
                "status": "enabled",
                "statusReason": None,
                "description": None,
                "catchUp": self.catch_up or "automatic",
                "internal": self.internal,
                "credentialId": None,
                "apiVersion": "2026-11-01",
            }
            made = Endpoint(answer.body["id"], secret, fields, [world.url(len(world.endpoints), "a")])
            good_endpoint(answer.body, {**made.view, "secret": secret})
            world.endpoints.append(made)


@dataclass(frozen=True)
class OnEndpoint:
    """A command on the endpoint at this index, or an unknown one if the index is not in use. The first is the test's own."""

    at: int

    def target(self, world: World) -> Endpoint | None:
        """Return the endpoint, also a removed one; None if it never existed."""
        return world.endpoints[self.at] if 0 <= self.at < len(world.endpoints) else None

    def path(self, world: World, tail: str = "") -> str:
        found = self.target(world)
        return f"/s2s/webhooks/{'whk_01M3250V00PPPPPPPPPPPPPPPP' if found is None else found.id}{tail}"

    def reasons(self, found: Endpoint | None) -> Iterator[tuple[int, str]]:
        """Yield each refusal that the call may get."""
        if found is None or found.gone:
            yield 404, "webhook_not_found"

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if not stopped(answer, *self.reasons(found)):
            assert found is not None
            self.carry_out(world, found, answer)

    def carry_out(self, world: World, found: Endpoint, answer: Answer) -> None:
        """Apply the command to an endpoint that exists; the default changes nothing."""
        assert answer.status == 200, answer
        good_endpoint(answer.body, found.view)


@dataclass(frozen=True)
class LookAtEndpoint(OnEndpoint):
    """Fetch an endpoint."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world))


@dataclass(frozen=True)
class PatchEndpoint(OnEndpoint):
    """Change the endpoint's fields, enable or disable it; `url` is the way of its new URL."""

    fields: JSON

    def given(self, world: World) -> JSON:
        """Return the fields, with the URL."""
        way = self.fields.get("url")
        return self.fields | ({} if way is None else {"url": world.url(self.at, way)})

    def request(self, world: World) -> Request:
        return Request("PATCH", self.path(world), self.given(world))

    def reasons(self, found: Endpoint | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        nulls = [name for name, value in self.fields.items() if value is None and name != "description"]
        bad = (
            self.fields.get("status") == "paused"
            or self.fields.get("url") == NO_WAY
            or self.fields.get("catchUp") == NO_CATCH_UP
        )
        if nulls or bad or NO_EVENT in (self.fields.get("events") or ()):
            yield 422, "invalid_input"
        elif found is not None:
            after = found.fields | self.fields
            if NOTES in after["events"] and not after["internal"]:
                yield 422, "invalid_input"

    def carry_out(self, world: World, found: Endpoint, answer: Answer) -> None:
        given = self.given(world)
        url = given.pop("url", found.urls[-1])
        found.urls += [] if url == found.urls[-1] else [url]
        if "events" in given:
            given["events"] = sorted(given["events"])
        if given.get("status", found.fields["status"]) != found.fields["status"]:
            given["statusReason"] = "by the API" if given["status"] == "disabled" else None
            found.stop()
        found.fields |= given
        super().carry_out(world, found, answer)


@dataclass(frozen=True)
class DropEndpoint(OnEndpoint):
    """Remove an endpoint."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world))

    def carry_out(self, world: World, found: Endpoint, answer: Answer) -> None:
        good(answer, {"id": found.id, "deleted": True})
        found.gone = True
        found.stop()


@dataclass(frozen=True)
class ListEndpoints:
    """List the endpoints, oldest first; secrets are masked."""

    def request(self, world: World) -> Request:
        return Request("GET", "/s2s/webhooks")

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        present = [each for each in world.endpoints if not each.gone]
        for told, endpoint in zip(answer.body["items"], present, strict=True):
            good_endpoint(told, endpoint.view)


@dataclass(frozen=True)
class Deliveries(OnEndpoint):
    """List an endpoint's deliveries: one for each event it subscribes to, and no others."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world, "/deliveries?limit=200"))

    def carry_out(self, world: World, found: Endpoint, answer: Answer) -> None:
        assert answer.status == 200, answer
        assert answer.body["nextCursor"] is None
        notes = [each for each in answer.body["items"] if each["eventType"] == NOTES]
        assert len(notes) == len(found.notes), (found, notes)
        untold = {"contact.updated", NOTES} | ({"survey.response.created"} if world.fading else set())
        told = [
            (each["eventId"], each["status"])
            for each in answer.body["items"]
            if each["eventId"] in found.deliveries or each["eventType"] not in untold
        ]
        assert {event for event, _ in told} == found.deliveries.keys(), (found, answer)
        assert len(told) == len(found.deliveries), answer
        may_be = {
            "sent": ("pending", "delivered"),
            "skipped": ("skipped",),
            "either": ("pending", "delivered", "skipped"),
        }
        for event, status in told:
            assert status in may_be[found.deliveries[event].outcome], (found.deliveries[event], status)
