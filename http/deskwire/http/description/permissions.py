"""The table of permissions with the calls that each opens, made from the routes; in Markdown and as served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from deskwire.engine.accounts.people import PERMISSIONS, ROLES
from deskwire.http.api.output.responses import json_line
from deskwire.http.api.routing import Route
from deskwire.http.app import ROUTES
from deskwire.http.description.tables import markdown_table, plain

MEANINGS: Final[Mapping[str, str]] = {
    "conversations.read": "Read conversations, notes and reports.",
    "conversations.reply": "Reply and write notes; be assigned conversations and tickets.",
    "conversations.manage": "Assign, close, tag and snooze conversations.",
    "conversations.delete": "Delete conversations, redact messages, and erase contacts.",
    "tickets.read": "Read tickets and teams.",
    "tickets.manage": "Create and change tickets.",
    "contacts.read": "Read contacts.",
    "contacts.manage": "Change, merge and export contacts.",
    "memory.read": "Read the memory of contacts.",
    "memory.manage": "Change the memory of contacts.",
    "snippets.manage": "Write snippets.",
    "surveys.read": "Read surveys and their responses.",
    "surveys.manage": "Edit surveys.",
    "translations.read": "Read translations.",
    "translations.manage": "Edit translations.",
    "webhooks.manage": "Manage webhooks and stream consumers.",
    "projects.manage": "Manage projects, their channels, keys, machine credentials and workflows.",
    "members.manage": "Manage members, roles and teams, and read the audit trail.",
}
"""Each permission with its meaning in words, by area."""

INTRODUCTION: Final = """\
# Permissions

<!-- Written by `make docs` from the table of routes; do not edit. -->

The permissions of [roles](../guide/people.md) and of [machine credentials](../guide/credentials.md), with the calls that each
opens. `GET /v3/permissions` returns this table. A call that names several permissions needs all of them. Other responses leave
parts out that the caller has no permission to read.
A server key can make all S2S calls, so a user needs every permission to create one.
"""


def permission_table() -> dict[str, Any]:
    """Return the table as the API returns it."""
    return {
        "permissions": [
            {
                "id": permission,
                "description": meaning,
                "operations": [_operation(route) for route in opened_by(permission)],
            }
            for permission, meaning in MEANINGS.items()
        ]
    }


def served() -> bytes:
    """Return the table as a line of JSON."""
    return json_line(permission_table())


def opened_by(permission: str) -> Iterator[Route]:
    """Yield the routes that require a permission."""
    return (route for route in ROUTES if permission in route.access.permissions)


def markdown() -> str:
    """Return the page."""
    held = markdown_table(
        ("Permission", "Meaning", "Built-in roles with it"),
        (
            (
                f"`{permission}`",
                meaning,
                ", ".join(role for role in ROLES if permission in PERMISSIONS[role]),
            )
            for permission, meaning in MEANINGS.items()
        ),
    )
    return "\n".join((INTRODUCTION, held, *_sections())).rstrip() + "\n"


def _sections() -> Iterator[str]:
    for permission in MEANINGS:
        rows = [
            (
                f"`{route.method} {route.public_path}`",
                plain(route.summary),
                ", ".join(f"`{each}`" for each in route.access.permissions if each != permission),
            )
            for route in opened_by(permission)
        ]
        yield f"## `{permission}`\n\n{markdown_table(('Call', 'Summary', 'Also needs'), rows)}"


def _operation(route: Route) -> dict[str, Any]:
    return {
        "operationId": route.operation_id,
        "method": route.method,
        "path": route.public_path,
        "summary": plain(route.summary),
        "permissions": list(route.access.permissions),
    }
