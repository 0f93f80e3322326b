"""A token that was issued before the clock was set back."""

from __future__ import annotations

from deskwire.engine.accounts.credentials import Tokens
from deskwire.engine.core.clock import wall_clock
from deskwire.engine.core.secret import Secrets


def test_token_is_accepted_after_the_clock_was_set_back() -> None:
    tokens = Tokens(Secrets("a secret of this installation, long enough"))
    later = wall_clock() + 3_600_000
    assert tokens.identity(tokens.issue("usr_1", later)).value == "usr_1"
