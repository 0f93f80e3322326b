"""The installation's secret, and those before it for as long as they are still good for something (ADR 25).

New things are signed and sealed with the current one. What a former one signed is accepted until its time is over;
what it sealed is opened for as long as it is known at all, so that nothing is lost whatever came in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from msgspec import Struct

from deskwire.engine.core.clock import Clock, iso, milliseconds, wall_clock

Keyring: TypeAlias = Callable[[], Sequence[bytes]]
"""The keys for one purpose as they are now: the one to sign with, then those that are accepted besides."""

_KEY_BYTES: Final = 32
_FORMER: Final = "former"
_LINE: Final = re.compile(rf"{_FORMER} (?P<text>.+) replaced (?P<replaced>\S+) until (?P<until>\S+)")


@lru_cache(maxsize=64)  # a few purposes of few secrets
def derived_key(secret: str, label: str, salt: bytes | None = None) -> bytes:
    """Return the 32-byte key for the purpose `label` (HKDF-SHA256, RFC 5869).

    Args:
        secret: the installation's secret.
        label: names the purpose; the same label and salt always give the same key.
        salt: random bytes, for one of many keys for that purpose.
    """
    info = f"deskwire/{label}".encode()
    return HKDF(algorithm=SHA256(), length=_KEY_BYTES, salt=salt, info=info).derive(secret.encode())


class FormerSecret(Struct, frozen=True):
    """A secret that was replaced; both times in milliseconds.

    Args:
        replaced: when.
        until: when what it signed is no longer accepted.
    """

    text: str
    replaced: int
    until: int


class Secrets:
    """The secrets as they are now. Whoever signs, verifies, seals or opens asks each time, so that a rotation reaches all.

    `known` are the texts of all of them, the current one first.
    """

    def __init__(self, current: str, former: Sequence[FormerSecret] = (), clock: Clock = wall_clock) -> None:
        self.current = current
        self.former = tuple(former)
        self.known = (current, *(each.text for each in self.former))
        self._clock = clock

    @property
    def accepted(self) -> tuple[str, ...]:
        """Return the secrets whose signatures are good now, the current one first."""
        if not self.former:
            return (self.current,)
        now = self._clock()
        return (self.current, *(each.text for each in self.former if now < each.until))

    def keys(self, label: str) -> Keyring:
        """The keys for the purpose `label`."""
        return lambda: tuple(derived_key(secret, label) for secret in self.accepted)

    def rotated(self, new: str, now: int, overlap_ms: int) -> Secrets:
        """Return what comes after this: a new secret, and the current one as a former."""
        return Secrets(new, (FormerSecret(self.current, now, now + overlap_ms), *self.former), self._clock)

    def without_expired(self, now: int, kept_ms: int) -> Secrets:
        """The same without those that nothing needs any more.

        Args:
            kept_ms: how long answers to requests are kept, which only the secret of then finds again.
        """
        good = [each for each in self.former if now < max(each.until, each.replaced + kept_ms)]
        return Secrets(self.current, good, self._clock)

    def become(self, other: Secrets) -> None:
        """Take over what the other has."""
        self.current, self.former, self.known = other.current, other.former, other.known

    def written(self) -> str:
        """The text of the secret's file: the current one, then a line for each former."""
        lines = [
            f"{_FORMER} {each.text} replaced {iso(each.replaced)} until {iso(each.until)}"
            for each in self.former
        ]
        return "\n".join((self.current, *lines, ""))

    @classmethod
    def read(cls, text: str, clock: Clock = wall_clock) -> Secrets:
        """Read what `written` has written. Raises ValueError if it is something else."""
        current, *lines = text.strip().split("\n")
        return cls(current.strip(), [_former(line) for line in lines], clock)


def _former(line: str) -> FormerSecret:
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError("It has a line that is neither the secret nor a former one.")
    return FormerSecret(found["text"], milliseconds(found["replaced"]), milliseconds(found["until"]))
