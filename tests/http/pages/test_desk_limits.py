"""The desk has the service's limits of a message."""

from __future__ import annotations

import re

from deskwire.engine.conversations.mentions import MENTIONS_MAX
from deskwire.engine.core.text import MESSAGE_TEXT_MAX
from deskwire.http.resources.conversations.requests import ATTACHMENTS_MAX
from tests.support.root import ROOT


def test_desk_has_the_limits_of_a_message() -> None:
    text = (ROOT / "http/deskwire/http/pages/desk/core/limits.js").read_text()
    limits = {name: int(value) for name, value in re.findall(r"export const (\w+) = ([\d_]+);", text)}
    assert limits == {
        "MESSAGE_TEXT_MAX": MESSAGE_TEXT_MAX,
        "ATTACHMENTS_MAX": ATTACHMENTS_MAX,
        "MENTIONS_MAX": MENTIONS_MAX,
    }
