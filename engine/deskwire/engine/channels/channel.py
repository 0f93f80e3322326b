"""Channels: the settings of a widget, and the credentials with which its customers are signed in."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Literal, get_args

from msgspec import Struct, field

from deskwire.engine.accounts.identity.algorithms import ALGORITHMS, Algorithm
from deskwire.engine.channels.origin import Origin, parse_origin, parse_pattern
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.values import entity_tag, replace

CHANNELS_MAX: Final = 50
"""Channels of a project."""
ORIGINS_MAX: Final = 50
PUBLIC_KEYS_MAX: Final = 5
"""Public keys of a channel: some issuers, each with two keys while it rotates them."""
SECRET_OVERLAP_MS: Final = 24 * 3_600_000
"""Time after a rotation during which the previous secret counts too, as for webhooks."""
_SECRET_BYTES: Final = 32  # as long as the hash of HS256 (RFC 7518, section 3.2)
SECRET_PREFIX: Final = "chs_"
"""Prefix of channels' secrets, which distinguishes them from other credentials."""

ChannelType = Literal["widget"]
IdentityMode = Literal["optional", "required", "none"]
KEY_ALGORITHMS: Final = ALGORITHMS
Position = Literal["left", "right"]
VisitorField = Literal["name", "email", "phone"]
VISITOR_FIELDS: Final[tuple[VisitorField, ...]] = get_args(VisitorField)

DEFAULT_COLOUR: Final = "#1f5eff"


class PublicKey(Struct, frozen=True):
    """A key that verifies customers' identities. `key` is PEM, `id` is the `kid` of tokens."""

    id: str
    algorithm: Algorithm
    key: str


class Look(Struct, frozen=True):
    """The appearance of a widget.

    Args:
        colour: of buttons, `#rrggbb`.
        texts: plain texts by BCP 47 language, each by name: `title`, `greeting`, `placeholder`, `offline`.
    """

    colour: str = DEFAULT_COLOUR
    position: Position = "right"
    texts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


class Channel(Struct, frozen=True):
    """A channel of a project. Times are in milliseconds; secrets are sealed (`core.encryption`).

    Args:
        project: storage key of the project.
        enabled: whether customers can use it.
        origins: patterns of the websites that may show it, see `origin.parse_pattern`; empty for none but the service itself.
        identity_mode: whether customers are signed in: `none` takes visitors only, `required` no visitors.
        visitors_ask: the fields asked of visitors, those that may stay empty with `?` at the end.
        starts_workflow: id of the workflow that starts with each conversation of the channel.
        survey: id of the survey that is shown after a conversation was closed.
        native: whether clients without an `Origin` are accepted, with a signed identity.
        old_secret: the previous secret, which also counts until `old_secret_until`.
    """

    rowid: int
    id: str
    project: int
    type: ChannelType
    name: str
    enabled: bool
    origins: tuple[str, ...]
    identity_mode: IdentityMode
    public_keys: tuple[PublicKey, ...]
    visitors_allowed: bool
    visitors_ask: tuple[str, ...]
    look: Look
    starts_workflow: str | None
    survey: str | None
    native: bool
    sealed_secret: bytes
    secret_tail: str
    created_at: int
    updated_at: int
    old_secret: bytes | None = None
    old_secret_until: int | None = None

    def allows_origin(self, origin: str) -> bool:
        """Return whether a page of this origin, an `Origin` header, may show the channel.

        The service's own origin is not among them: the caller allows it.
        """
        return _allows(self.origins, origin)

    @property
    def frame_sources(self) -> tuple[str, ...]:
        """The allowed origins as sources of `frame-ancestors`."""
        return tuple(pattern.frame_source for pattern in _patterns(self.origins))

    def accepted_secrets(self, now: int) -> tuple[bytes, ...]:
        """Return the sealed secrets that count at `now`, the current one first."""
        if self.old_secret is None or (self.old_secret_until or 0) <= now:
            return (self.sealed_secret,)
        return self.sealed_secret, self.old_secret

    def with_secret(self, sealed: bytes, tail: str, at: int) -> Channel:
        """Return the channel with a new secret.

        The current secret counts beside the new one for 24 hours. An older one stops at once.
        """
        return replace(
            self,
            sealed_secret=sealed,
            secret_tail=tail,
            old_secret=self.sealed_secret,
            old_secret_until=at + SECRET_OVERLAP_MS,
            updated_at=at,
        )


def new_channel(
    channel_id: str, project: int, name: str, sealed_secret: bytes, tail: str, at: int
) -> Channel:
    """Return a channel with the default settings, made at `at` (ms). No website may show it yet."""
    return Channel(
        rowid=0,
        id=channel_id,
        project=project,
        type="widget",
        name=name,
        enabled=True,
        origins=(),
        identity_mode="optional",
        public_keys=(),
        visitors_allowed=True,
        visitors_ask=(),
        look=Look(),
        starts_workflow=None,
        survey=None,
        native=False,
        sealed_secret=sealed_secret,
        secret_tail=tail,
        created_at=at,
        updated_at=at,
    )


def channel_view(channel: Channel, now: int, secret: str | None = None) -> dict[str, Any]:
    """Return the channel object at `now` (ms). Its secret is masked unless it is given, at creation and rotation."""
    until = channel.old_secret_until
    return {
        "id": channel.id,
        "type": channel.type,
        "name": channel.name,
        "enabled": channel.enabled,
        "origins": list(channel.origins),
        "identity": {
            "mode": channel.identity_mode,
            "publicKeys": [
                {"id": each.id, "algorithm": each.algorithm, "key": each.key} for each in channel.public_keys
            ],
            "secret": secret or f"{SECRET_PREFIX}…{channel.secret_tail}",
            "previousSecretExpiresAt": iso_or_none(until if until is not None and until > now else None),
        },
        "visitors": {"allowed": channel.visitors_allowed, "ask": list(channel.visitors_ask)},
        "look": _look_view(channel.look),
        "hours": None,
        "startsWorkflow": channel.starts_workflow,
        "survey": channel.survey,
        "native": channel.native,
        "createdAt": iso(channel.created_at),
        "updatedAt": iso(channel.updated_at),
    }


def channel_tag(channel: Channel) -> str:
    """Return the entity tag of a channel. It ignores the end of an old secret, which needs no change."""
    return entity_tag(channel_view(channel, channel.updated_at))


def new_channel_secret() -> str:
    """Return a new secret: the prefix, and 256 random bits."""
    return SECRET_PREFIX + secrets.token_urlsafe(_SECRET_BYTES)


def public_view(channel: Channel) -> dict[str, Any]:
    """Return the settings that every visitor may see."""
    return {
        "id": channel.id,
        "enabled": channel.enabled,
        "name": channel.name,
        "identity": {"mode": channel.identity_mode},
        "visitors": {"allowed": channel.visitors_allowed, "ask": list(channel.visitors_ask)},
        "look": _look_view(channel.look),
        "survey": channel.survey,
        "hours": None,
        "expectedWaitS": None,
    }


def _look_view(look: Look) -> dict[str, Any]:
    return {
        "colour": look.colour,
        "position": look.position,
        "texts": {language: dict(texts) for language, texts in look.texts.items()},
    }


@lru_cache(maxsize=1_024)  # the channels in use, for the check of each call's `Origin`
def _patterns(origins: tuple[str, ...]) -> tuple[Origin, ...]:
    return tuple(found for found in map(parse_pattern, origins) if isinstance(found, Origin))


# Each call of a page has the same origin, and parsing costs more than the rest of the check.
@lru_cache(maxsize=1_024)
def _allows(origins: tuple[str, ...], origin: str) -> bool:
    found = parse_origin(origin)
    return found is not None and any(pattern.matches(found) for pattern in _patterns(origins))
