"""Secrets at rest."""

from __future__ import annotations

import base64

import pytest
from cryptography.fernet import Fernet

from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.secret import Secrets, derived_key

SEALING_KEY = "4f3d5a8c857c4b66b70243704e6bdf7788858264a870f996dd6ec02066f89aec"


def test_sealed_text_opens_again_under_the_same_secret() -> None:
    assert Encryption(Secrets("secret")).open(Encryption(Secrets("secret")).seal("whsec_ä")) == "whsec_ä"


def test_sealed_text_hides_its_content_and_differs_each_time() -> None:
    sealing = Encryption(Secrets("secret"))
    first, second = sealing.seal("whsec_abc"), sealing.seal("whsec_abc")
    assert b"whsec" not in first
    assert first != second


def test_secret_of_another_installation_opens_nothing_and_reports_the_reason() -> None:
    with pytest.raises(DecryptionFailed, match="DESKWIRE_SECRET"):
        Encryption(Secrets("another")).open(Encryption(Secrets("secret")).seal("whsec_abc"))


def test_altered_sealed_text_is_refused() -> None:
    sealed = bytearray(Encryption(Secrets("secret")).seal("whsec_abc"))
    sealed[20] ^= 1
    with pytest.raises(DecryptionFailed):
        Encryption(Secrets("secret")).open(bytes(sealed))


def test_each_purpose_has_a_key_of_its_own_that_never_changes() -> None:
    """HKDF-SHA256 (RFC 5869) without salt over `deskwire/<label>`; known answers."""
    assert derived_key("secret", "sealing").hex() == SEALING_KEY
    assert derived_key("secret", "stream").hex() != SEALING_KEY
    assert len(derived_key("secret", "stream")) == 32


def test_every_alteration_and_every_shortening_is_refused() -> None:
    sealing = Encryption(Secrets("secret"))
    sealed = sealing.seal("whsec_abc")
    for place in range(len(sealed)):
        altered = bytearray(sealed)
        altered[place] ^= 1
        for broken in (bytes(altered), sealed[:place]):
            with pytest.raises(DecryptionFailed):
                sealing.open(broken)


def test_text_sealed_by_an_older_version_opens_unchanged_until_the_secret_changes() -> None:
    """Versions before sealed by Fernet, under the key of the purpose itself."""
    older = Fernet(base64.urlsafe_b64encode(bytes.fromhex(SEALING_KEY))).encrypt(b"whsec_abc")
    secrets = Secrets("secret")
    sealing = Encryption(secrets)
    assert sealing.open(older) == "whsec_abc"
    assert sealing.renewed(older) is older
    secrets.become(secrets.rotated("another", 0, 0))
    renewed = sealing.renewed(older)
    assert renewed[0] == 1
    assert Encryption(Secrets("another")).open(renewed) == "whsec_abc"


def test_each_run_has_its_own_key_and_each_text_its_own_nonce() -> None:
    runs = [Encryption(Secrets("secret")) for _ in range(3)]
    sealed = [sealing.seal("same") for sealing in runs for _ in range(50)]
    assert len({each[1:17] for each in sealed}) == len(runs)
    assert len({each[17:29] for each in sealed}) == len(sealed)
    assert {Encryption(Secrets("secret")).open(each) for each in sealed} == {"same"}


def test_key_seals_a_bounded_number_and_none_under_a_replaced_secret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("deskwire.engine.core.encryption._TEXTS_MAX", 2)
    secrets = Secrets("secret")
    sealing = Encryption(secrets)
    salts = [sealing.seal("same")[1:17] for _ in range(5)]
    assert [salts.index(salt) for salt in salts] == [0, 0, 2, 2, 4]
    secrets.become(secrets.rotated("another", 0, 0))
    assert Encryption(Secrets("another")).open(sealing.seal("same")) == "same"
