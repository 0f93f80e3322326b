"""The actor of a command or change, as events, activity logs and the audit trail name it."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

ActorType = Literal[
    "user", "server_key", "machine", "contact", "bot", "operator", "system", "anonymous", "unknown"
]


class Actor(Struct, frozen=True):
    """The user, credential, contact, workflow or operator that gave a command.

    Args:
        type: `bot` is a workflow, `machine` a machine credential, `operator` an admin at the command line, `system`
            the service itself, `anonymous` a caller without a credential. `unknown` in a record is a bug.
        id: public id; an operator's is the login name on the machine. None for the types after `operator`.
        name: name or label when the command was given; None if the actor has none, or if the reader looks it up.
    """

    type: ActorType
    id: str | None = None
    name: str | None = None


SYSTEM: Final = Actor("system")
ANONYMOUS: Final = Actor("anonymous")
