"""Access tokens when time passes or the clock is set back."""

from __future__ import annotations

import pytest

from deskwire.engine.accounts import credentials
from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.errors import Unauthenticated
from deskwire.engine.core.secret import Secrets


def test_token_is_accepted_after_the_clock_was_set_back() -> None:
    tokens = Tokens(Secrets("a secret of this installation, long enough"))
    later = wall_clock() + 3_600_000
    assert tokens.identity(tokens.issue("usr_1", later)).value == "usr_1"


def test_token_that_was_accepted_before_is_refused_after_it_has_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tokens = Tokens(Secrets("a secret of this installation, long enough"))
    now = wall_clock()
    token = tokens.issue("usr_1", now, lifetime_s=60)
    assert tokens.identity(token) == tokens.identity(token)
    monkeypatch.setattr(credentials, "wall_clock", lambda: now + 61_000)
    with pytest.raises(Unauthenticated) as refused:
        tokens.identity(token)
    assert refused.value.reason == "token_expired"
