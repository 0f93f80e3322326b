"""Removes credentials from log entries.

This is a last defence, because code does not log secrets. Text that looks like a secret, and values whose names
promise one, are replaced by `[redacted]` anywhere in an entry, including tracebacks. The patterns run in linear
time, because strangers may have written the text.
"""

import re
from collections.abc import Mapping
from typing import Final

REDACTED: Final = "[redacted]"
DEEPEST: Final = 8  # levels of nesting; deeper values are redacted as text, which also ends cycles

SECRET_WORDS: Final = frozenset(
    {"password", "passwd", "secret", "authorization", "token", "cookie", "signature"}
)
_NAMES: Final = "|".join(sorted(SECRET_WORDS))
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")

CREDENTIAL: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    r"mk_[A-Za-z0-9_-]{4,}"  # machine credentials
    r"|sk_[A-Za-z0-9_-]{4,}"  # server keys, ours and those of other services
    r"|whsec_[A-Za-z0-9+/=_-]+"  # webhook secrets; the masked form has an ellipsis here and stays
    r"|c(?:hs|t|v)_[A-Za-z0-9_-]{20,}"  # secrets of channels, tokens of customers and visitors
    r"|eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){0,4}"  # JWT: base64url of '{"' and the rest
    r"|(?<=://)[^\s/@:\"']{0,256}:[^\s/@\"']{1,256}(?=@)"  # user and password in a URL
    r")"
)
NAMED: Final = re.compile(  # 'password': 'x', token="x", Authorization: Bearer x, &token=x, also inside escaped text
    rf"(?i)(?P<name>(?<![^\W_])(?:{_NAMES}))(?P<between>\\?[\"']?\s*[:=]\s*b?)"
    r"(?:(?P<quote>\\?[\"'])(?:(?!(?P=quote)).)*(?P=quote)|(?<=[:])\s*(?:Bearer|Basic)\s+\S+|(?<==)[^\s&\"',;)]+)"
)

_SUSPECT: Final = re.compile(rf"(?i:{_NAMES})|mk_|sk_|whsec_|chs_|ct_|cv_|eyJ|://")
"""Present in every text that matches CREDENTIAL or NAMED, and in every name of a secret: a fast pre-check."""


def redacted(value: object, depth: int = 0) -> object:
    """Return `value` without credentials: text is searched, containers are copied, other objects become text."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return redacted_text(value)
        case Mapping() if depth < DEEPEST:
            return {redacted(key, DEEPEST): _item(key, item, depth + 1) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() if depth < DEEPEST:
            return [redacted(item, depth + 1) for item in value]
        case _:
            return redacted_text(repr(value))


def redacted_text(text: str) -> str:
    """Return the text with every credential replaced."""
    if _SUSPECT.search(text) is None:
        return text
    return NAMED.sub(rf"\g<name>\g<between>{REDACTED}", CREDENTIAL.sub(REDACTED, text))


def promises_secret(key: object) -> bool:
    """Return whether a value of this name must be hidden, as in `webhook_secret` or `accessToken`."""
    name = str(key)
    return _SUSPECT.search(name) is not None and any(
        word.lower() in SECRET_WORDS for word in _WORD.findall(name)
    )


def _item(key: object, item: object, depth: int) -> object:
    number = isinstance(item, int | float)  # a number such as `token_count=3` is no secret
    return REDACTED if item and not number and promises_secret(key) else redacted(item, depth)
