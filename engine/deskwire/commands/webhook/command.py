"""`deskwire webhook` and its commands. Their modules are imported when they run."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import click

from deskwire.commands.api_client.access import with_access
from deskwire.commands.api_client.call import call
from deskwire.commands.shell.help import HelpGroup
from deskwire.commands.shell.options import json_option, yes_option
from deskwire.commands.shell.output import Columns, print_json, show, show_created
from deskwire.commands.shell.questions import confirm

if TYPE_CHECKING:
    from deskwire.commands.api_client.access import ServiceAccess

_ONE: Final = "whk_01JC4T2V9QZ6D3M8W5N7R1XKPH"
_TEST_TIMEOUT_S: Final = 30.0  # for the receiver's response to a test, including the connection

COLUMNS: Final[Columns] = {
    "id": itemgetter("id"),
    "url": itemgetter("url"),
    "events": lambda item: ", ".join(item["events"]) or "all",
    "status": itemgetter("status"),
    "circuit": itemgetter("circuit"),
    "health": lambda item: item["healthReason"] or "healthy",
    "last delivery": lambda item: _last(item["lastDelivery"]),
    "description": itemgetter("description"),
}


def _last(delivery: dict[str, Any] | None) -> str | None:
    return None if delivery is None else f"{delivery['status']} at {delivery['at']}"


@click.group("webhook", cls=HelpGroup)
def webhook() -> None:
    """Create, list, test, change and delete the webhook endpoints of a project."""


def _endpoint(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the id of an endpoint, the options of the service, and `--json` to a command."""
    argument = click.argument("endpoint", metavar="whk_...", callback=_checked)
    return argument(with_access(json_option("JSON")(command)))


def _checked(ctx: click.Context, param: click.Parameter, text: str) -> str:
    from deskwire.engine.core.ids import is_id

    if not is_id(text, "whk"):
        raise click.BadParameter(f"An endpoint's id is whk_ and 26 characters, not {text!r}.", ctx, param)
    return text


@webhook.command("list", examples=["deskwire webhook list", "deskwire webhook list --json"])
@with_access
@json_option("JSON")
def list_all(access: ServiceAccess, as_json: bool) -> None:
    """List the endpoints of the project, oldest first, with masked secrets."""
    show(call(access, lambda service: service.fetch("/s2s/webhooks")), as_json, COLUMNS)


@webhook.command(
    "create",
    examples=[
        "SECRET=$(deskwire webhook create https://crm.example.com/hook)",
        "deskwire webhook create https://crm.example.com/hook --event message.created",
    ],
)
@click.argument("receiver", metavar="URL")
@click.option(
    "--event",
    "events",
    multiple=True,
    metavar="TYPE",
    help="Event type to send; may be given several times. Without it, all types of the contract but typing are sent.",
)
@click.option("--description", metavar="TEXT", help="Purpose of the endpoint.")
@click.option("--internal", is_flag=True, help="Allow event types with internal notes of agents.")
@click.option(
    "--no-catch-up", is_flag=True, help="Do not send deliveries again that an outage of the receiver dropped."
)
@click.option(
    "--api-version",
    metavar="DATE",
    help="The version of events to send; default: the newest.",
    show_default=False,
)
@with_access
@json_option("JSON")
def create(
    receiver: str,
    events: tuple[str, ...],
    description: str | None,
    internal: bool,
    no_catch_up: bool,
    api_version: str | None,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Create an endpoint for this URL, and print its signing secret. It is not shown again."""
    body = {
        "url": receiver,
        "events": [*events],
        "internal": internal,
        "catchUp": "off" if no_catch_up else "automatic",
        **({} if description is None else {"description": description}),
        **({} if api_version is None else {"apiVersion": api_version}),
    }
    fields = {"url": "receiver", "catchUp": "no_catch_up", "apiVersion": "api_version"}
    made = call(access, lambda service: service.post("/s2s/webhooks", body), fields)
    words = f"The endpoint {made['id']} was created. Its signing secret is shown only this once:"
    show_created(made, as_json, "secret", words)


@webhook.command("test", examples=[f"deskwire webhook test {_ONE}"])
@_endpoint
@click.pass_context
def test(
    ctx: click.Context,
    endpoint: str,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Send a `webhook.test` event to an endpoint, and show its receiver's response. The exit status is 1 unless it is accepted."""
    from deskwire.commands.deliveries.delivery_log import delivery_lines

    delivery = call(
        access, lambda service: service.post(f"/s2s/webhooks/{endpoint}/test", None, _TEST_TIMEOUT_S)
    )
    if as_json:
        print_json(delivery)
    else:
        click.echo("\n".join(delivery_lines(delivery)))
    ctx.exit(0 if delivery["status"] == "delivered" else 1)


@webhook.command("rotate", examples=[f"SECRET=$(deskwire webhook rotate {_ONE})"])
@_endpoint
def rotate(endpoint: str, access: ServiceAccess, as_json: bool) -> None:
    """Give an endpoint a new signing secret and print it. It is not shown again; the old one also signs for 24 hours."""
    made = call(access, lambda service: service.post(f"/s2s/webhooks/{endpoint}/rotate-secret"))
    words = (
        f"The endpoint {made['id']} has a new signing secret, which is shown only this once. "
        f"The old one also signs until {made['oldSecretUntil']}."
    )
    show_created(made, as_json, "secret", words)


@webhook.command("disable", examples=[f"deskwire webhook disable {_ONE}"])
@_endpoint
def disable(endpoint: str, access: ServiceAccess, as_json: bool) -> None:
    """Disable an endpoint. Its pending deliveries are skipped; `webhook recover` sends them after all."""
    _set_status(endpoint, "disabled", access, as_json)


@webhook.command("enable", examples=[f"deskwire webhook enable {_ONE}"])
@_endpoint
def enable(endpoint: str, access: ServiceAccess, as_json: bool) -> None:
    """Enable an endpoint, and close its circuit."""
    _set_status(endpoint, "enabled", access, as_json)


def _set_status(
    endpoint: str,
    status: str,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    changed = call(access, lambda service: service.patch(f"/s2s/webhooks/{endpoint}", {"status": status}))
    show(changed, as_json, COLUMNS)


@webhook.command(
    "recover",
    examples=[
        f"deskwire webhook recover {_ONE} --since 1d --dry-run",
        f"deskwire webhook recover {_ONE} --since 2026-11-21T08:00:00Z",
    ],
)
@click.option(
    "--since",
    metavar="TIME|evt_...",
    required=True,
    help="Time (ISO 8601, or 30m, 2h, 7d ago) or event to start after.",
)
@click.option("--dry-run", is_flag=True, help="Only count the deliveries.")
@_endpoint
def recover(
    endpoint: str,
    since: str,
    dry_run: bool,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Send all deliveries again that were dropped or skipped since a time or event."""
    from deskwire.commands.deliveries.delivery_log import recover as recovered
    from deskwire.commands.deliveries.delivery_log import recovery_lines
    from deskwire.commands.shell.times import time_or_event

    begin = time_or_event("--since", since)
    result = call(access, lambda service: recovered(service, endpoint, begin, dry_run))
    if as_json:
        print_json(result)
    else:
        click.echo("\n".join(recovery_lines(result, dry_run)))


@webhook.command(
    "delete", examples=[f"deskwire webhook delete {_ONE}", f"deskwire webhook delete {_ONE} --yes"]
)
@yes_option("Delete the endpoint")
@_endpoint
def delete(
    endpoint: str,
    yes: bool,
    access: ServiceAccess,
    as_json: bool,
) -> None:
    """Delete an endpoint for good. Its pending deliveries stop, and what it missed can't be recovered."""
    found = call(access, lambda service: service.fetch(f"/s2s/webhooks/{endpoint}"))
    confirm(f"The endpoint {endpoint} for {found['url']} will be deleted for good.", yes)
    gone = call(access, lambda service: service.delete(f"/s2s/webhooks/{endpoint}"))
    show_created(gone, as_json, "id", f"The endpoint {endpoint} has been deleted.")
