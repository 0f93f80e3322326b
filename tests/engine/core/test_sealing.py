"""Secrets at rest."""

from __future__ import annotations

import pytest

from deskwire.engine.core.sealing import SealBroken, Sealing
from deskwire.engine.core.secret import Secrets, derived_key

SEALING_KEY = "4f3d5a8c857c4b66b70243704e6bdf7788858264a870f996dd6ec02066f89aec"


def test_what_was_sealed_opens_again_under_the_same_secret() -> None:
    assert Sealing(Secrets("secret")).open(Sealing(Secrets("secret")).seal("whsec_ä")) == "whsec_ä"


def test_sealed_text_does_not_show_what_it_is_and_differs_each_time() -> None:
    sealing = Sealing(Secrets("secret"))
    first, second = sealing.seal("whsec_abc"), sealing.seal("whsec_abc")
    assert b"whsec" not in first
    assert first != second


def test_another_installations_secret_opens_nothing_and_says_why() -> None:
    with pytest.raises(SealBroken, match="DESKWIRE_SECRET"):
        Sealing(Secrets("another")).open(Sealing(Secrets("secret")).seal("whsec_abc"))


def test_altered_sealed_text_is_refused() -> None:
    sealed = bytearray(Sealing(Secrets("secret")).seal("whsec_abc"))
    sealed[20] ^= 1
    with pytest.raises(SealBroken):
        Sealing(Secrets("secret")).open(bytes(sealed))


def test_each_purpose_has_a_key_of_its_own_that_never_changes() -> None:
    """HKDF-SHA256 (RFC 5869) without salt over `deskwire/<label>`; known answers."""
    assert derived_key("secret", "sealing").hex() == SEALING_KEY
    assert derived_key("secret", "stream").hex() != SEALING_KEY
    assert len(derived_key("secret", "stream")) == 32
