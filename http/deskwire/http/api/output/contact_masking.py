"""Masking of contacts for machine credentials without the permission (ADR 70).

A command on a conversation returns the conversation, which includes its contact. A credential that may read
neither contacts nor conversations gets only the contact's ids. The same holds for a stored response that is replayed.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

import orjson

from deskwire.http.api.calls import Answer, RawJson, ReplayedAnswer, Tagged

_READING: Final = frozenset({"contacts.read", "conversations.read"})
_CONTACT: Final = "contact"
_OWN: Final = "attributes"  # set by the backend, with any names
_SHOWN: Final = frozenset({"id", "userId"})


def mask_contacts(answer: Answer, permissions: AbstractSet[str]) -> Answer:
    """Return the answer without the identity of contacts.

    It is unchanged if one of the permissions allows reading contacts.
    """
    if not _READING.isdisjoint(permissions):
        return answer
    match answer:
        case Mapping():
            shown: Mapping[str, Any] = _without_identity(answer)
            return shown
        case RawJson(body) if body:
            return RawJson(_rewritten(body) + b"\n")
        case ReplayedAnswer(body):
            return ReplayedAnswer(_rewritten(body))
        case Tagged(view, tag):
            return Tagged(_without_identity(view), tag)
        case _:
            return answer


def _rewritten(body: bytes) -> bytes:
    return orjson.dumps(_without_identity(orjson.loads(body)))


def _without_identity(value: Any) -> Any:
    """Return a JSON value in which every nested contact has only its ids.

    Its other fields are null.
    """
    if isinstance(value, Mapping):
        return {name: _shown(name, inner) for name, inner in value.items()}
    return [_without_identity(each) for each in value] if isinstance(value, list | tuple) else value


def _shown(name: str, value: Any) -> Any:
    if name == _CONTACT:
        return _ids_alone(value)
    return value if name == _OWN else _without_identity(value)


def _ids_alone(contact: Any) -> Any:
    if not isinstance(contact, Mapping):
        return contact
    return {name: inner if name in _SHOWN else None for name, inner in contact.items()}
