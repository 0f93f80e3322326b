"""The secrets of a channel while one is exchanged, and its views."""

from __future__ import annotations

from deskwire.engine.channels.channel import channel_tag, channel_view, new_channel, public_view
from tests.support.builders import NOON

DAY_MS = 24 * 3_600_000
CHANNEL = new_channel("chn_1", 1, "Shop", b"first", "aaaa", NOON)


def test_both_secrets_count_for_a_day_after_a_rotation() -> None:
    rotated = CHANNEL.with_secret(b"second", "bbbb", NOON + 5)
    assert CHANNEL.accepted_secrets(NOON) == (b"first",)
    assert rotated.accepted_secrets(NOON + 5 + DAY_MS - 1) == (b"second", b"first")
    assert rotated.accepted_secrets(NOON + 5 + DAY_MS) == (b"second",)


def test_second_rotation_ends_the_first_secret_at_once() -> None:
    rotated = CHANNEL.with_secret(b"second", "bbbb", NOON).with_secret(b"third", "cccc", NOON + 1)
    assert rotated.accepted_secrets(NOON + 1) == (b"third", b"second")


def test_end_of_the_old_secret_disappears_from_the_view_and_keeps_the_tag() -> None:
    rotated = CHANNEL.with_secret(b"second", "bbbb", NOON)
    during, after = channel_view(rotated, NOON + 1), channel_view(rotated, NOON + DAY_MS)
    assert during["identity"]["previousSecretExpiresAt"] is not None
    assert after["identity"]["previousSecretExpiresAt"] is None
    assert channel_tag(rotated) == channel_tag(rotated)
    assert channel_tag(rotated) != channel_tag(CHANNEL)


def test_public_view_has_no_origin_key_or_secret() -> None:
    assert public_view(CHANNEL).keys() == {
        *("id", "enabled", "name", "identity", "visitors", "look", "survey", "hours", "expectedWaitS")
    }
    assert public_view(CHANNEL)["identity"] == {"mode": "optional"}
