"""Identifiers: a prefix and a ULID, so that they sort by time of creation (decisions 1)."""

from __future__ import annotations

import re
import secrets
from base64 import b32encode
from functools import lru_cache
from typing import Final, Literal

ALPHABET: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, the alphabet of ULIDs."""

Prefix = Literal[
    "org",
    "prj",
    "usr",
    "key",
    "mcr",
    "ses",
    "con",
    "cnv",
    "msg",
    "evt",
    "dlv",
    "whk",
    "tkt",
    "team",
    "srv",
    "rsp",
    "upl",
    "req",
    "mem",
    "act",
    "wfl",
    "aud",
    "snp",
    "str",
    "tok",
    "psh",
    "psn",
    "chn",
    "cse",
    "rol",
    "inv",
    "eml",
    "idn",
    "pky",
    "viw",
    "blk",
]

_RANDOM_BITS: Final = 80
_RANDOM_MAX: Final = (1 << _RANDOM_BITS) - 1
_DRAWN: Final = 64
_drawn: list[int] = []
_written: list[str] = []
_STEP_BITS: Final = 40
_STEP_MAX: Final = (1 << _STEP_BITS) - 1
_HALF: Final = 8
_HALF_BYTES: Final = _STEP_BITS // 8
"""Characters of half the random part of a ULID, and the bytes that they encode."""

_ANY: Final = (ALPHABET * 8).encode()
"""Translation table from a random byte to a random character."""

_CROCKFORD: Final = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789ABCDEFGHJKMNPQRSTVWXYZ")
_TIME_MAX: Final = (1 << 48) - 1
_PAIRS: Final = tuple(a + b for a in ALPHABET for b in ALPHABET)
DAY_MS: Final = 86_400_000
_TIME_AT: Final = len("evt_")
_BLOCK: Final = 8
"""The number of leading ULID characters that hold the time in units of 1,024 ms. A day has exactly 84,375 of them."""

_BLOCKS: Final = DAY_MS // 1_024
_DIGITS: Final = str.maketrans("JKMNPQRSTVWXYZ", "IJKLMNOPQRSTUV")
"""Translation table from Crockford's digits to the digits of `int(…, 32)`."""

_SHAPE: Final = re.compile(r"[a-z]{3,4}_[0-7][0-9A-HJKMNP-TV-Z]{25}")


class IdGenerator:
    """A generator of monotonically increasing identifiers, even if the clock stands still or goes backwards.

    Args:
        last: the newest existing identifier, for example of an earlier process. None if there is none.
    """

    __slots__ = ("_last",)

    def __init__(self, last: str | None = None) -> None:
        self._last = ulid_value(last) if last else 0

    def new(self, prefix: Prefix, now_ms: int) -> str:
        """Return a new identifier, larger than all earlier ones of this generator."""
        value = now_ms << _RANDOM_BITS | _random()
        if value <= self._last:
            value = self._last + 1 + (_random() >> _RANDOM_BITS - _STEP_BITS)
        self._last = value
        return f"{prefix}_{_text(value)}"


def new_id(prefix: Prefix, now_ms: int) -> str:
    """Return a new identifier. Identifiers of the same millisecond are in no particular order."""
    try:
        random = _written.pop()
    except IndexError:
        random = _more_written()
    return f"{prefix}_{_time(now_ms)}{random}"


def fresh_ids(prefix: Prefix, now_ms: int, count: int) -> list[str]:
    """Return `count` new identifiers in ascending order.

    Faster than `new_id` for thousands of them.
    """
    if not count:
        return []
    head = new_id(prefix, now_ms)[: -2 * _HALF]
    first = secrets.randbits(_STEP_BITS - 1)  # room to count on
    counted = _encoded(b"".join([(first + number).to_bytes(_HALF_BYTES, "big") for number in range(count)]))
    random = _random_characters(count * _HALF)
    return [
        f"{head}{counted[at : at + _HALF]}{random[at : at + _HALF]}" for at in range(0, count * _HALF, _HALF)
    ]


def _encoded(data: bytes) -> str:
    """Encode a multiple of five bytes in Crockford's base 32, whose digits are in the same order as RFC 4648's."""
    return b32encode(data).translate(_CROCKFORD).decode()


def id_before(prefix: Prefix, at_ms: int) -> str:
    """Return the lower bound of the identifiers made at or after this time.

    It is larger than all earlier identifiers.
    """
    return f"{prefix}_{_text(max(0, min(at_ms, _TIME_MAX)) << _RANDOM_BITS)}"


def is_id(text: str, prefix: Prefix) -> bool:
    """Return whether `text` has the form of an identifier with this prefix."""
    return text.startswith(f"{prefix}_") and _SHAPE.fullmatch(text) is not None


def ulid_value(identifier: str) -> int:
    """Return the ULID in `identifier` as a 128-bit integer.

    Raises ValueError if there is none.
    """
    from ulid import (
        ULID,
    )  # imported here because it takes a fifth of a command's start time, and few commands need it

    return int(ULID.from_str(identifier.partition("_")[2]))


def id_of_value(prefix: Prefix, value: int) -> str:
    """Return the identifier with this 128-bit integer, the reverse of `ulid_value`."""
    return f"{prefix}_{_text(value)}"


def _random() -> int:
    """Return the random bits of one identifier.

    Bits for 64 identifiers are drawn at a time because one system call costs as much as the rest of an identifier.
    """
    while not _drawn:
        bits = secrets.randbits(_RANDOM_BITS * _DRAWN)
        _drawn.extend(bits >> shift & _RANDOM_MAX for shift in range(0, _RANDOM_BITS * _DRAWN, _RANDOM_BITS))
    try:
        return _drawn.pop()
    except IndexError:  # another thread took the last ones
        return secrets.randbits(_RANDOM_BITS)


def _more_written() -> str:
    """Return the random characters of one identifier, and queue those of the next ones in `_written`."""
    drawn = _random_characters(2 * _HALF * _DRAWN)
    _written.extend([drawn[at : at + 2 * _HALF] for at in range(2 * _HALF, len(drawn), 2 * _HALF)])
    return drawn[: 2 * _HALF]


def _random_characters(count: int) -> str:
    return secrets.token_bytes(count).translate(_ANY).decode()


def _text(value: int) -> str:
    """Return the 128-bit integer as 26 characters, five times as fast as `str(ULID.from_int(value))`."""
    p = _PAIRS
    high, low = value >> _STEP_BITS & _STEP_MAX, value & _STEP_MAX
    return (
        f"{_time(value >> _RANDOM_BITS)}"
        f"{p[high >> 30 & 1023]}{p[high >> 20 & 1023]}{p[high >> 10 & 1023]}{p[high & 1023]}"
        f"{p[low >> 30]}{p[low >> 20 & 1023]}{p[low >> 10 & 1023]}{p[low & 1023]}"
    )


@lru_cache(maxsize=64)  # a request makes three identifiers, a busy service several per millisecond
def _time(ms: int) -> str:
    p = _PAIRS
    return f"{p[ms >> 40 & 1023]}{p[ms >> 30 & 1023]}{p[ms >> 20 & 1023]}{p[ms >> 10 & 1023]}{p[ms & 1023]}"


def day_of(identifier: str) -> int:
    """Return the day on which an identifier was made, in days since 1970-01-01 UTC. Its prefix must have three letters."""
    return _day_of_block(identifier[_TIME_AT : _TIME_AT + _BLOCK])


@lru_cache(maxsize=64)  # a commit makes many ids in one second
def _day_of_block(digits: str) -> int:
    return int(digits.translate(_DIGITS), 32) // _BLOCKS


def id_time_ms(identifier: str) -> int:
    """Return the time at which `identifier` was made, in milliseconds since the epoch."""
    return ulid_value(identifier) >> _RANDOM_BITS
