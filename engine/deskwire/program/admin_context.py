"""The services and the registry of the operator's commands."""

from __future__ import annotations

import pwd
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from msgspec import Struct

from deskwire.engine.accounts.credential_ends import CredentialLife
from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.audit.trail import AttributedStore, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Store
from deskwire.http.api.input.validation import Body
from deskwire.program.rotation import Rotation

B = TypeVar("B", bound=Body)


class AdminContext(Struct, frozen=True):
    """The services that commands use.

    Args:
        tokens: the issuer of access tokens; None if the installation does not accept its own.
        rotation: replaces the installation's secret.
        credential_life: the longest life of new server keys and machine credentials.
        send_test_mail: sends a test mail to an address; None without mail settings.
        url: the URL by which browsers reach the service.
    """

    store: Store
    clock: Clock
    passwords: Passwords
    tokens: Callable[[], Tokens | None]
    rotation: Callable[[], Rotation]
    credential_life: CredentialLife = CredentialLife()
    url: str = ""
    send_test_mail: Callable[[str], Awaitable[None]] | None = None

    def signed(self, user: int) -> AdminContext:
        """Return a context whose store records this user of the machine as the operator."""
        by = ChangeOrigin(Actor("operator", _login(user)), self.clock())
        return replace(self, store=AttributedStore(by, self.store))


def _login(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # the user of a container may have no entry
        return str(user)


Result = Mapping[str, Any]
Operation = Callable[[AdminContext, Any], Awaitable[Result]]
OPERATIONS: Final[dict[str, tuple[type[Body], Operation]]] = {}


def operation(
    name: str, command: type[B]
) -> Callable[[Callable[[AdminContext, B], Awaitable[Result]]], Operation]:
    """Register the decorated function as the operation for commands of this name."""

    def register(function: Callable[[AdminContext, B], Awaitable[Result]]) -> Operation:
        OPERATIONS[name] = (command, function)
        return function

    return register


def refusal(error: DomainError) -> dict[str, Any]:
    """Return a refusal in the form of a response."""
    problems = [f"{problem.pointer}: {problem.message}" for problem in getattr(error, "problems", ())]
    return {"code": error.reason, "detail": error.detail, "problems": problems}
