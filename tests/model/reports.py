"""Reports, recomputed from the model: the counts, and the durations where both times are known (ADR 74)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from tests.model.commands import Answer, Request
from tests.model.things import JSON, Conversation, Moment, exactly
from tests.model.world import World

Kind = Literal["first-response", "time-to-close", "csat", "volume", "backlog"]
KINDS: Final[Sequence[Kind]] = ("first-response", "time-to-close", "csat", "volume", "backlog")
By = Literal["agent", "tag"]
BYS: Final[Sequence[By | None]] = (None, "agent", "tag")

Thing = tuple[str | None, Any]
"""An item that is counted, with the agent it belongs to."""


@dataclass(frozen=True)
class LookAtReport:
    """Fetch a report of the last days, a range that covers the whole example."""

    kind: Kind
    by: By | None = None

    def request(self, world: World) -> Request:
        return Request("GET", f"/reports/{self.kind}{'' if self.by is None else f'?by={self.by}'}")

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        groups: dict[str | None, list[Any]] = {}
        total: list[Any] = []
        for conversation in (each for each in world.conversations if not each.gone):
            for agent, thing in self.things(conversation):
                total.append(thing)
                keys: list[str | None] = [agent] if self.by == "agent" else [*conversation.tags] or [None]
                for key in keys:
                    groups.setdefault(key, []).append(thing)
        self.same(total, answer.body["total"])
        told = {row["key"]: row for row in answer.body["rows"]}
        assert (self.by is None and not told) or told.keys() == groups.keys(), (groups, answer)
        for key, row in told.items():
            self.same(
                groups[key], {name: value for name, value in row.items() if name not in ("key", "name")}
            )

    def things(self, conversation: Conversation) -> Iterable[Thing]:
        """Yield the items that the report counts in a conversation."""
        counted = conversation.milestones
        match self.kind:
            case "first-response":
                if counted.answered is not None:
                    yield counted.answerer, (counted.asked, counted.answered)
            case "time-to-close":
                yield from ((each.agent, (each.since, each.at)) for each in counted.closings)
            case "csat":
                if conversation.fields["rating"] is not None:
                    yield counted.rater, conversation.fields["rating"]
            case "volume":
                yield conversation.agent, "conversationsCreated"
                yield from ((each.agent, "conversationsClosed") for each in counted.closings)
                yield from ((each, "conversationsReopened") for each in counted.reopenings)
                yield from ((agent, f"{kind}Messages") for kind, agent in counted.written)
            case "backlog":
                if conversation.fields["status"] != "CLOSED":
                    yield conversation.agent, counted.waits

    def same(self, things: list[Any], told: JSON) -> None:
        """Assert that the figures are those of these items."""
        match self.kind:
            case "first-response" | "time-to-close":
                durations(things, told)
            case "csat":
                assert exactly(ratings(things), told), (things, told)
            case "volume":
                counts = Counter(things)
                counts["messages"] = sum(
                    number for name, number in counts.items() if name.endswith("Messages")
                )
                assert all(counts[name] == number for name, number in told.items()), (counts, told)
                assert counts.keys() - told.keys() <= {"messages"}
            case "backlog":
                assert (told["open"], told["waiting"]) == (len(things), sum(things)), (things, told)


def durations(spans: list[tuple[Moment, Moment]], told: JSON) -> None:
    """Assert that these are the figures of the spans; durations are compared if all are known."""
    assert told["count"] == len(spans), (spans, told)
    known = [(since.at, until.at) for since, until in spans]
    lasting = sorted((until - since).total_seconds() for since, until in known if since and until)
    if spans and len(lasting) == len(spans):
        count = len(lasting)
        percentiles = {
            name: lasting[-(-count * part // 100) - 1] for name, part in (("median", 50), ("p90", 90))
        }
        wanted = {**percentiles, "min": lasting[0], "max": lasting[-1], "mean": sum(lasting) / count}
        assert all(abs(told[name] - value) < 0.001 for name, value in wanted.items()), (wanted, told)


def ratings(scores: list[int]) -> JSON:
    """Return the figures of ratings."""
    count, satisfied = len(scores), sum(score >= 7 for score in scores)
    return {
        "count": count,
        "average": round(sum(scores) / count, 2) if count else None,
        "csat": round(100 * satisfied / count, 1) if count else None,
        "scores": [scores.count(score) for score in range(11)],
    }
