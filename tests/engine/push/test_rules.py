"""The rules of notifications, by the cases that the desk's twin of them is tested with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from deskwire.engine.accounts.notifications import NotificationSettings, QuietHours
from deskwire.engine.core.clock import milliseconds
from deskwire.engine.push.rules import NotifiedUser, is_quiet, notification_cause

_CASES: Final = json.loads((Path(__file__).parents[2] / "support/data/notifications.json").read_text())
_ME: Final = NotifiedUser(_CASES["me"]["id"], frozenset(_CASES["me"]["teams"]), lambda _: False)


@pytest.mark.parametrize("case", _CASES["events"], ids=lambda each: each["case"])
def test_event_notifies_as_in_the_desk(case: dict[str, Any]) -> None:
    settings = msgspec.convert(case["settings"], NotificationSettings)
    event = case["event"]
    assert notification_cause(event["type"], event["data"], _ME, settings) == case["reason"]


@pytest.mark.parametrize("case", _CASES["quiet"], ids=lambda each: each["case"])
def test_quiet_hours_are_those_of_the_desk(case: dict[str, Any]) -> None:
    quiet = msgspec.convert(case["quietHours"], QuietHours | None)
    assert is_quiet(quiet, milliseconds(case["at"])) is case["quiet"]


def test_customer_of_a_followed_conversation_notifies_by_the_stored_followers() -> None:
    conversation = {"id": "cnv_1", "assignee": {"type": "user", "id": "usr_other"}, "archived": False}
    data = {"message": {"author": {"type": "contact", "id": "x"}}, "conversation": conversation}
    follower = NotifiedUser("usr_me", frozenset(), lambda each: each == "cnv_1")
    assert notification_cause("message.created", data, follower, NotificationSettings()) == "following"
    assert notification_cause("message.created", data, _ME, NotificationSettings()) is None
