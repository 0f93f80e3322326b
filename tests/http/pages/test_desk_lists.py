"""The desk has a text for each value of the service's lists, and offers no other ones."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from typing import Final, get_args

import pytest

from deskwire.engine.accounts.people import ROLES
from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import ACTOR_TYPES
from deskwire.engine.conversations.conversation import Status
from deskwire.engine.events.project_events import EventActorType
from deskwire.engine.surveys.definition import QuestionType
from deskwire.engine.surveys.insights.alerts import Severity
from deskwire.engine.surveys.insights.comments import Sentiment
from deskwire.engine.surveys.question_types import TYPES
from deskwire.engine.surveys.survey import Status as SurveyStatus
from deskwire.engine.tickets.ticket import Priority
from deskwire.engine.tickets.ticket import Status as TicketStatus
from deskwire.engine.translations.translation import EntryType
from deskwire.engine.webhooks.delivery import DeliveryStatus
from deskwire.engine.workflows.definition import TRIGGERS
from deskwire.engine.workflows.runs import RunState
from tests.support.root import ROOT

DESK: Final = ROOT / "http/deskwire/http/pages/desk"
KEY: Final = re.compile(r'(?:^|,)\s*(?:"([\w.]+)"|(\w+)): "')
VALUE: Final = re.compile(r'"([\w.]+)"')

SCORED: Final = {"number"} | {name for name, rules in TYPES.items() if rules.scoring is not None}
"""The types of questions whose figures have a score: the scales, and the mean of numbers."""


def texts(file: str, name: str, number: int = 0) -> set[str]:
    """Return the keys of the desk's texts of this name; `number` counts those of the same name in the file."""
    found = re.findall(rf"\b{name}: \{{([^{{}}]*)\}}", (DESK / file).read_text())
    return {quoted or plain for quoted, plain in KEY.findall(found[number])}


def values(file: str, name: str) -> list[str]:
    """Return the strings of a constant's list."""
    found = re.search(rf"const {name} = (?:new Set\()?\[([^\]]*)\]", (DESK / file).read_text())
    assert found is not None, f"{file} has no {name}"
    return VALUE.findall(found[1])


@pytest.mark.parametrize(
    ("shown", "known"),
    [
        (texts("core/texts-lazy.js", "statuses") - {"all", "active", "archived"}, get_args(Status)),
        (texts("core/texts.js", "status"), get_args(Status)),
        (texts("developers/texts.js", "statuses"), get_args(Status)),
        (texts("ui/ticket-texts.js", "statuses"), get_args(TicketStatus)),
        (texts("admin/texts.js", "statuses"), get_args(Status)),
        (texts("ui/ticket-texts.js", "priorities"), get_args(Priority)),
        (texts("core/texts-lazy.js", "priorities"), get_args(Priority)),
        (texts("admin/texts.js", "roles"), ROLES),
        (texts("admin/texts.js", "actors"), ACTOR_TYPES),
        (texts("admin/texts.js", "actions"), ACTIONS),
        (texts("insights/texts.js", "statuses"), get_args(SurveyStatus)),
        (texts("insights/texts.js", "types", 0), get_args(QuestionType)),
        (texts("insights/texts.js", "types", 1), get_args(EntryType)),
        (texts("insights/texts.js", "scoreNames"), SCORED),
        (texts("insights/texts.js", "sentiments"), get_args(Sentiment)),
        (texts("insights/texts.js", "severities"), get_args(Severity)),
        (texts("insights/texts.js", "triggers"), TRIGGERS),
        (texts("insights/texts.js", "states"), get_args(RunState)),
        (set(values("insights/survey-figures.js", "SCORED")), SCORED),
        (set(values("developers/deliveries.js", "STATUSES")), get_args(DeliveryStatus)),
    ],
)
def test_the_desk_has_the_values_of_the_service(
    shown: AbstractSet[str], known: AbstractSet[str] | tuple[str, ...]
) -> None:
    assert shown == set(known)


def test_an_event_names_its_user_and_every_other_actor_has_a_text() -> None:
    """A user and a bot have a name of their own."""
    assert texts("developers/texts.js", "actors") == {*get_args(EventActorType)} - {"user", "bot"}
