"""Parses `POST /s2s/stream/auth` in every form that clients send (contract 4.4, decisions 5).

Published Pusher clients send a form regardless of the header, and some can add fields only to the
query string. So the body alone decides whether it is JSON, and the query adds missing fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from msgspec import Struct

from deskwire.engine.core.errors import BadRequest, Invalid, Problem
from deskwire.engine.core.text import NUL, NUL_MESSAGE, NUL_PROBLEM_CODE
from deskwire.engine.stream.subscription import is_resume
from deskwire.http.api.input.validation import decode_json, is_blank
from deskwire.http.api.input.validation_messages import pointer_token

CONSUMER_ID_LIMIT: Final = 128
_FIELDS: Final = ("socket_id", "channel_name", "consumerId", "typingEvents", "resume")
_SOCKET_ID: Final = re.compile(r"[0-9]{1,20}\.[0-9]{1,20}")
_TYPING: Final = {"true": True, "1": True, "false": False, "0": False}
_ABSENT: Final = ("", "null", "undefined")
"""Values of pusher-js in a form for a missing field."""
_MANY_FIELDS: Final = 50


class AuthorizationRequest(Struct, frozen=True):
    """The fields of an authorization request.

    Args:
        channel_name: as sent; `channel.open_channel` validates it.
        resume: `auto`, `live`, or an event id.
    """

    socket_id: str
    channel_name: str
    consumer_id: str
    typing_events: bool
    resume: str


def parse_authorization(body: bytes, query: Mapping[str, str]) -> AuthorizationRequest:
    """Parse the request in `body`, with missing fields from the query string.

    Raises:
        BadRequest: the body is neither a JSON object nor a form.
        Invalid: with all problems, including unknown fields.
    """
    sent = _body_fields(body)
    return _Check(sent, {name: value for name, value in query.items() if name not in sent}).request()


def _body_fields(body: bytes) -> Mapping[str, Any]:
    """Return the body's fields: JSON if its first non-blank character is `{`, else a form."""
    try:
        if body.lstrip()[:1] == b"{":
            fields: Mapping[str, Any] = decode_json(body)
            return fields
        pairs = parse_qsl(
            body.decode().strip(), keep_blank_values=True, errors="strict", max_num_fields=_MANY_FIELDS
        )
    except ValueError as error:
        raise BadRequest(
            f"The body is neither a JSON object nor a form: {error}", code="malformed_body"
        ) from None
    return dict(pairs)


class _Check:
    """Parses the fields one by one and collects all problems."""

    def __init__(self, sent: Mapping[str, Any], added: Mapping[str, str]) -> None:
        self._values = {**sent, **added}
        self._added = added
        self._problems = [
            Problem(f"/{pointer_token(name)}", "unknown_field", "Unknown field.")
            for name in sent
            if name not in _FIELDS
        ]

    def request(self) -> AuthorizationRequest:
        """Return the request. Raises Invalid."""
        request = AuthorizationRequest(
            self._socket_id(),
            self._channel_name(),
            self._consumer_id(),
            self._typing_events(),
            self._resume(),
        )
        if self._problems:
            raise Invalid(*self._problems)
        return request

    def _socket_id(self) -> str:
        text = self._text("socket_id")
        if text and _SOCKET_ID.fullmatch(text) is None:
            self._wrong("socket_id", "invalid_format", "Must be two decimal numbers joined by a dot.")
        return text

    def _channel_name(self) -> str:
        return self._text("channel_name")

    def _consumer_id(self) -> str:
        text = self._text("consumerId")
        if text in ("null", "undefined"):
            self._wrong("consumerId", "invalid_value", f"`{text}` is what a client sends without an id.")
        elif len(text) > CONSUMER_ID_LIMIT:
            self._wrong("consumerId", "too_long", f"May have at most {CONSUMER_ID_LIMIT} characters.")
        elif not text.isprintable():
            self._wrong("consumerId", "invalid_value", "May have printable characters only.")
        elif is_blank(text):
            self._wrong("consumerId", "blank", "Must have a visible character.")
        return text

    def _typing_events(self) -> bool:
        value = self._values.get("typingEvents")
        if isinstance(value, bool):
            return value
        if value is None or value in _ABSENT:
            return False
        if isinstance(value, str) and value in _TYPING:
            return _TYPING[value]
        self._wrong("typingEvents", "invalid_value", "Must be true or false.")
        return False

    def _resume(self) -> str:
        value = self._values.get("resume")
        if value is None or value in _ABSENT:
            return "auto"
        if isinstance(value, str) and is_resume(value):
            return value
        self._wrong("resume", "invalid_value", "Must be `auto`, `live` or an event id.")
        return "auto"

    def _text(self, name: str) -> str:
        value = self._values.get(name)
        if value is None or value == "":
            self._wrong(name, "required", "Is required.")
        elif not isinstance(value, str):
            self._wrong(name, "invalid_type", "Must be a text.")
        elif NUL in value:
            self._wrong(name, NUL_PROBLEM_CODE, NUL_MESSAGE)
        else:
            return value
        return ""

    def _wrong(self, name: str, code: str, message: str) -> None:
        pointer = f"?{name}" if name in self._added else f"/{name}"
        self._problems.append(Problem(pointer, code, message))
