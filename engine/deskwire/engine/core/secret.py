"""The secret of the installation, and its previous secrets while they are needed (ADR 25).

The current secret signs and encrypts. Signatures of a previous secret are accepted until its overlap ends. Data encrypted with
a previous secret can be decrypted as long as that secret is in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from deskwire.engine.core.clock import Clock, iso, milliseconds, wall_clock

Keyring: TypeAlias = Callable[[], Sequence[bytes]]
"""Returns the current keys for one purpose: first the signing key, then the other accepted keys."""

_KEY_BYTES: Final = 32
_FORMER: Final = "former"
_LINE: Final = re.compile(rf"{_FORMER} (?P<text>.+) replaced (?P<replaced>\S+) until (?P<until>\S+)")


@lru_cache(maxsize=64)  # a few purposes of few secrets
def derived_key(secret: str, label: str, salt: bytes | None = None) -> bytes:
    """Return the 32-byte key for the purpose `label` (HKDF-SHA256, RFC 5869).

    Args:
        secret: the installation's secret.
        label: name of the purpose. The same label and salt always give the same key.
        salt: random bytes, if the purpose has many keys.
    """
    # Imported late: read-only commands import this module and must start fast.
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = f"deskwire/{label}".encode()
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=salt, info=info).derive(secret.encode())


class PreviousSecret(Struct, frozen=True):
    """A secret that was replaced. Times are in milliseconds.

    Args:
        replaced: time of the replacement.
        until: time until which its signatures are accepted.
    """

    text: str
    replaced: int
    until: int


class Secrets:
    """The current and previous secrets.

    `known` has the texts of all of them, the current one first.

    Callers read the secrets at each use and keep no copy, so that a rotation takes effect everywhere.
    """

    def __init__(
        self, current: str, previous: Sequence[PreviousSecret] = (), clock: Clock = wall_clock
    ) -> None:
        self.current = current
        self.previous = tuple(previous)
        self.known = (current, *(each.text for each in self.previous))
        self._clock = clock

    @property
    def accepted(self) -> tuple[str, ...]:
        """The secrets whose signatures are accepted now, the current one first."""
        if not self.previous:
            return (self.current,)
        now = self._clock()
        return (self.current, *(each.text for each in self.previous if now < each.until))

    def keys(self, label: str) -> Keyring:
        """Return a function that returns the current keys for the purpose `label`."""
        return lambda: tuple(derived_key(secret, label) for secret in self.accepted)

    def rotated(self, new: str, now: int, overlap_ms: int) -> Secrets:
        """Return the secrets after a rotation: `new` is the current one, and today's current one is a previous one."""
        return Secrets(
            new, (PreviousSecret(self.current, now, now + overlap_ms), *self.previous), self._clock
        )

    def without_expired(self, now: int, kept_ms: int) -> Secrets:
        """Return the secrets without the previous ones that are no longer needed.

        Args:
            kept_ms: retention of stored responses, which are found only with the secret of their time.
        """
        good = [each for each in self.previous if now < max(each.until, each.replaced + kept_ms)]
        return Secrets(self.current, good, self._clock)

    def become(self, other: Secrets) -> None:
        """Replace these secrets with the other ones, in place."""
        self.current, self.previous, self.known = other.current, other.previous, other.known

    def written(self) -> str:
        """Return the content of the secret file: the current secret, then one line per previous secret."""
        lines = [
            f"{_FORMER} {each.text} replaced {iso(each.replaced)} until {iso(each.until)}"
            for each in self.previous
        ]
        return "\n".join((self.current, *lines, ""))

    @classmethod
    def read(cls, text: str, clock: Clock = wall_clock) -> Secrets:
        """Parse the content of the secret file. Raises ValueError if it has another format."""
        current, *lines = text.strip().split("\n")
        return cls(current.strip(), [_former(line) for line in lines], clock)


def _former(line: str) -> PreviousSecret:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError("It has a line that is neither the secret nor a previous one.")
    return PreviousSecret(found["text"], milliseconds(found["replaced"]), milliseconds(found["until"]))
