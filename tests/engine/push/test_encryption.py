"""The encryption of pushes: the example of RFC 8291, and what a browser reads."""

from __future__ import annotations

from typing import Final

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, derive_private_key

from deskwire.engine.push.encryption import (
    PAYLOAD_MAX,
    browser_key,
    encrypt,
    from_base64url,
    to_base64url,
)
from tests.support.sockets.push_service import PushBrowser

# RFC 8291, appendix A.
_PLAIN: Final = b"When I grow up, I want to be a watermelon"
_OWN: Final = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
_BROWSER: Final = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
_AUTH: Final = "BTBZMqHH6r4Tts7J_aSIgg"
_SALT: Final = "DGv6ra1nlYgDCS1FRnbzlw"
_BODY: Final = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_example_of_the_standard_is_encrypted_to_the_same_bytes() -> None:
    own = derive_private_key(int.from_bytes(from_base64url(_OWN), "big"), SECP256R1())
    body = encrypt(
        _PLAIN, from_base64url(_BROWSER), from_base64url(_AUTH), salt=from_base64url(_SALT), own=own
    )
    assert to_base64url(body) == _BODY


@pytest.mark.parametrize("size", [0, 1, PAYLOAD_MAX])
def test_browser_decrypts_a_payload_of_any_size_in_one_record(size: int) -> None:
    browser = PushBrowser("https://push.example/1")
    body = encrypt(b"x" * size, browser.point, browser.auth)
    assert browser.decrypted(body) == b"x" * size
    assert len(body) <= 4096


def test_same_payload_never_gives_the_same_bytes() -> None:
    browser = PushBrowser("https://push.example/1")
    first, second = (encrypt(b"Hello", browser.point, browser.auth) for _ in range(2))
    assert not set(zip(first[:16:4], second[:16:4], strict=True)) & {(first[21], second[21])}
    assert first[21:86] != second[21:86], "each push has a key of its own"


def test_longer_payload_is_refused() -> None:
    browser = PushBrowser("https://push.example/1")
    with pytest.raises(ValueError, match="at most 3993 fit"):
        encrypt(b"x" * (PAYLOAD_MAX + 1), browser.point, browser.auth)


@pytest.mark.parametrize("point", [b"", b"\x04" * 65, b"\x02" + b"\x01" * 32, b"\x04" + b"\0" * 64])
def test_bytes_that_are_no_point_are_refused(point: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the message is the library's for some
        browser_key(point)


@pytest.mark.parametrize("text", ["a b", "ä", "AA+A", "AA/A", "A"])
def test_text_that_is_not_base64url_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the message is the library's for some
        from_base64url(text)
