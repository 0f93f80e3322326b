"""Rotations of the installation's secret: the new one seals and signs, and the old one stays valid for a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.encryption import Encryption
from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.engine.core.secret import PreviousSecret, Secrets
from deskwire.engine.stream.token import Grant, TokenRefused, issue, verify
from deskwire.engine.uploads.links import Links

OLD, NEW, NEWEST = (
    "the old secret of good length 1234",
    "the new secret of good length 5678",
    "the newest secret",
)
OVERLAP_MS = 1_000
GRANT = Grant("prj_1", "key_1", "1.2", "private-x", "c1")
TIMES = st.integers(0, 253_370_764_800_000)
WORDS = st.tuples(
    st.characters(categories=["L", "N"]),
    st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])),
).map(lambda parts: "".join(parts).strip())


class HandClock:
    """A clock that is set; it begins now, as PyJWT knows no other."""

    def __init__(self) -> None:
        self.now = wall_clock()

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def secrets(clock: HandClock) -> Secrets:
    """As they are before a rotation."""
    return Secrets(OLD, (), clock)


def rotate(secrets: Secrets, clock: HandClock, new: str = NEW) -> None:
    secrets.become(secrets.rotated(new, clock(), OVERLAP_MS))


def test_access_token_of_a_former_secret_is_valid_until_its_overlap_ends(
    secrets: Secrets, clock: HandClock
) -> None:
    tokens = Tokens(secrets)
    before = tokens.issue("usr_1", clock())
    rotate(secrets, clock)
    after = tokens.issue("usr_1", clock())
    assert {tokens.identity(each).value for each in (before, after)} == {"usr_1"}
    assert Tokens(Secrets(NEW)).identity(after).value == "usr_1"
    clock.now += OVERLAP_MS
    assert tokens.identity(after).value == "usr_1"
    with pytest.raises(Unauthenticated) as refused:
        tokens.identity(before)
    assert refused.value.reason == "invalid_token"


def test_expired_token_of_a_former_secret_is_reported_as_expired(secrets: Secrets, clock: HandClock) -> None:
    expired = Tokens(secrets).issue("usr_1", clock() - 7_200_000)
    rotate(secrets, clock)
    with pytest.raises(Unauthenticated) as refused:
        Tokens(secrets).identity(expired)
    assert refused.value.reason in {"token_expired", "invalid_token"}


def test_stream_token_of_a_former_secret_is_valid_until_its_overlap_ends(
    secrets: Secrets, clock: HandClock
) -> None:
    keys = secrets.keys("stream")

    def grant(token: str) -> Grant:
        return verify(keys(), token, project_id="prj_1", socket_id="1.2", channel="private-x", now_ms=clock())

    before = issue(keys()[0], GRANT, now_ms=clock())
    rotate(secrets, clock)
    after = issue(keys()[0], GRANT, now_ms=clock())
    assert grant(before) == grant(after) == GRANT
    clock.now += OVERLAP_MS
    assert grant(after) == GRANT
    with pytest.raises(TokenRefused):
        grant(before)


def test_link_of_a_former_secret_is_valid_until_its_overlap_ends(secrets: Secrets, clock: HandClock) -> None:
    links = Links(secrets.keys("uploads"), "https://files.test/v3/uploads")
    before, _ = links.url("upl_1", "a.txt", clock())
    rotate(secrets, clock)
    after, _ = links.url("upl_1", "a.txt", clock())
    assert links.upload_id(before, clock()) == links.upload_id(after, clock()) == "upl_1"
    for url in (before, after):
        query = dict(each.split("=") for each in url.partition("?")[2].split("&"))
        links.check("upl_1", "a.txt", query["expires"], query["signature"], clock())
    clock.now += OVERLAP_MS
    assert (links.upload_id(before, clock()), links.upload_id(after, clock())) == (None, "upl_1")
    query = dict(each.split("=") for each in before.partition("?")[2].split("&"))
    with pytest.raises(Forbidden) as refused:
        links.check("upl_1", "a.txt", query["expires"], query["signature"], clock())
    assert refused.value.reason == "link_invalid"


def test_sealed_text_opens_after_any_number_of_rotations_and_is_renewed_once(
    secrets: Secrets, clock: HandClock
) -> None:
    sealing = Encryption(secrets)
    sealed = sealing.seal("whsec_x")
    for new in (NEW, NEWEST):
        rotate(secrets, clock, new)
        clock.now += 2 * OVERLAP_MS  # stored texts do not depend on the overlap
        assert sealing.open(sealed) == "whsec_x"
    renewed = sealing.renewed(sealed)
    assert Encryption(Secrets(NEWEST)).open(renewed) == "whsec_x"
    assert sealing.renewed(renewed) is renewed
    assert sealing.renewed(b"something else") == b"something else"


def test_former_secret_is_kept_while_tokens_or_stored_responses_need_it() -> None:
    secrets = Secrets(NEW, (PreviousSecret(OLD, 100, 300),))
    assert secrets.without_expired(299, 50).previous == secrets.previous, "it is accepted"
    assert secrets.without_expired(300, 50).previous == ()
    assert secrets.without_expired(300, 250).previous == secrets.previous, (
        "stored responses of that time are kept"
    )
    assert secrets.without_expired(350, 250).previous == ()


@given(WORDS, st.lists(st.builds(PreviousSecret, WORDS, TIMES, TIMES), max_size=3))
def test_file_reads_back_as_written(current: str, previous: list[PreviousSecret]) -> None:
    found = Secrets.read(Secrets(current, previous).written())
    assert (found.current, found.previous) == (current, tuple(previous))


def test_file_of_an_older_version_has_one_secret() -> None:
    found = Secrets.read(f"{OLD}\n")
    assert (found.current, found.previous) == (OLD, ())


@pytest.mark.parametrize("line", ["another secret", f"former {OLD}", f"former {OLD} replaced x until y"])
def test_a_file_with_anything_else_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"line|time"):
        Secrets.read(f"{NEW}\n{line}\n")
