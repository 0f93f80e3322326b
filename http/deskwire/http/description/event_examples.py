"""The reference page of events, with an envelope of each type as the engine makes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import repeat
from typing import Any, Final

import orjson

from deskwire.engine.accounts.people import Assignee
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.automation.decide import decide_with_workflow
from deskwire.engine.conversations.commands import (
    AnswerStep,
    Assign,
    Close,
    Command,
    ContactRef,
    Create,
    Delete,
    Patch,
    PostMessage,
    Reopen,
    StartWorkflow,
    WorkflowCommand,
)
from deskwire.engine.conversations.conversation import Author, Conversation
from deskwire.engine.conversations.decide import fold
from deskwire.engine.conversations.events import contact_updated, public_events, webhook_test
from deskwire.engine.conversations.facts import Deleted, MessagePosted
from deskwire.engine.conversations.typing import NO_TYPISTS, SetTyping, TypingAgent, set_typing
from deskwire.engine.core.values import replace
from deskwire.engine.events.types import (
    AGENTS,
    API_VERSION,
    CATALOG,
    EXTENSIONS,
    EventDraft,
    EventSpec,
    encode_envelope,
)
from deskwire.engine.uploads.links import Links
from deskwire.engine.uploads.upload import Attachment
from deskwire.engine.workflows.definition import Buttons, Flow, Option, WorkflowDefinition
from deskwire.engine.workflows.workflow import Published
from deskwire.http.description.extension_examples import extension_envelopes
from deskwire.http.description.tables import markdown_table

_LINKS: Final = Links(lambda: (b"example",), "https://support.example.com/v3/uploads")
_NOON: Final = 1_793_534_400_000  # 2026-11-01T12:00:00.000Z
_SECOND: Final = 1_000
_PROJECT: Final = "prj_01KZ000000000000000000SH0P"
_ENDPOINT: Final = "whk_01KZ0000000000000000000W01"
_AGENT: Final = "usr_01KZ0000000000000000AGENT1"
_CONTACT: Final = Contact(
    1, "con_01KZ0000000000000000C0NTCT", "u1", _NOON, _NOON, "Ada", "ada@example.org", None, None
)
_WORKFLOW: Final = Published(
    "wfl_01KZ00000000000000000000WF",
    1,
    WorkflowDefinition(
        (
            Flow(
                "main",
                (
                    Buttons(
                        1, "Did that help?", (Option("yes", "Yes", None), Option("no", "No", None)), False
                    ),
                ),
            ),
        )
    ),
    {},
)
_IDS: Final = repeat("msg_01KZ00000000000000000000M3")
_COMMANDS: Final[tuple[Command | WorkflowCommand, ...]] = (
    Create(
        "cnv_01KZ00000000000000000000C1", 1, ContactRef("u1", {}), "Where is my order?", {"order": "A-1001"}
    ),
    PostMessage("msg_01KZ00000000000000000000M1", Author("contact"), "Hello, where is my order?"),
    Assign(Assignee("user", _AGENT, "Grace")),
    PostMessage(
        "msg_01KZ00000000000000000000M2",
        Author("agent", _AGENT, "Grace"),
        "It left us today.",
        attachments=(Attachment("upl_01KZ00000000000000000000VP", "label.png", "image/png", 18_211),),
    ),
    Patch({"title": "Order A-1001"}),
    Close("agent"),
    Reopen(),
    StartWorkflow(_WORKFLOW),
    AnswerStep(1, "yes"),
    Delete("manual"),
)

INTRODUCTION: Final = f"""\
# Events

<!-- Written by `make docs` from the registry of event types and the engine itself; do not edit. -->

Every event has the same envelope on every channel: webhook, stream and feed carry the same bytes. `apiVersion` is
`{API_VERSION}`. [Concepts](../concepts.md) explains order, `sequence` and duplicates.

A *numbered* event takes the next `sequence` of its conversation; the others have `null`. The examples are one
conversation from its beginning to its end, as the engine makes them.
"""


EXTENDED: Final = """\
## Extensions

These go beyond the contract. A webhook endpoint receives them if its `events` list them, but not with an empty list. [The
feed](../guide/extensions.md) lists them if `types` names them. Consumers of the stream don't receive them. They have the common
envelope and no sequence; those of one conversation, contact or ticket arrive in order. `note.created` needs an
endpoint with `internal`, and is not in the feed.

"""

_FOR_AGENTS: Final = """\
## For agents only

These are sent only on [the agents' stream](../guide/agents-stream.md): no webhook, consumer, feed,
count or export has them. They have no sequence. `GET /v3/stream` describes their data.

"""


def markdown() -> str:
    """Return the page."""
    examples = example_envelopes()
    parts = [INTRODUCTION, _table(list(CATALOG.values()))]
    parts += [_section(kind, examples[kind.type]) for kind in CATALOG.values()]
    parts.append(EXTENDED + markdown_table(("Type", "When", "Also on the agents' stream"), _extension_rows()))
    beyond = extension_envelopes()
    parts += [_section(kind, beyond[kind.type]) for kind in EXTENSIONS.values()]
    parts.append(_FOR_AGENTS + markdown_table(("Type", "When"), _agent_rows()))
    return "\n".join(parts)


def example_envelopes() -> Mapping[str, bytes]:
    """Return an envelope of each type that the engine makes, by running its functions."""
    contact = replace(_CONTACT, name="Ada Lovelace", updated_at=_NOON)
    test = webhook_test(_ENDPOINT, "https://crm.example.org/deskwire")
    others = (contact_updated(contact), *_typed(), test)
    drafts = [*_played(), *((draft, _NOON) for draft in others)]
    envelopes: dict[str, bytes] = {}
    for number, (draft, at) in enumerate(drafts, 1):
        event_id = f"evt_01KZ00000000000000000000{number:02}"
        envelopes.setdefault(draft.type, encode_envelope(draft, event_id, _PROJECT, at))
    return envelopes


def _played() -> Iterator[tuple[EventDraft, int]]:
    """Run the commands one after the other, and yield each event with its time."""
    state: Conversation | None = None
    for number, command in enumerate(_COMMANDS):
        at = _NOON + number * _SECOND
        facts = decide_with_workflow(
            state, command, at, _WORKFLOW if isinstance(command, AnswerStep) else None, _IDS
        )
        for _, fact, after in list(fold(state, facts, at)):
            if isinstance(fact, MessagePosted) and fact.message.author.type == "contact":
                author = Author("contact", _CONTACT.id, _CONTACT.name)
                fact = MessagePosted(replace(fact.message, author=author))
            for draft in public_events(fact, after, _CONTACT, _PROJECT, (), partial(_LINKS.shown, now=at)):
                yield draft, at
            state = None if isinstance(fact, Deleted) else after


def _typed() -> Iterator[EventDraft]:
    """Yield the events of an agent who starts and stops typing."""
    conversation_id, agent = "cnv_01KZ00000000000000000000C1", TypingAgent(_AGENT, "Grace")
    typists, started = set_typing(NO_TYPISTS, SetTyping(agent, True), conversation_id, 0.0)
    _, stopped = set_typing(typists, SetTyping(agent, False), conversation_id, 1.0)
    yield from (*started, *stopped)


def _table(kinds: list[EventSpec]) -> str:
    rows = [
        (
            f"`{kind.type}`",
            kind.when,
            _yes(kind.numbered),
            _delivered(kind),
        )
        for kind in kinds
    ]
    return markdown_table(("Type", "When", "Numbered", "Delivered"), rows)


def _agent_rows() -> list[tuple[str, str]]:
    return [(f"`{kind.type}`", kind.when) for kind in AGENTS.values() if not kind.extension]


def _extension_rows() -> list[tuple[str, str, str]]:
    return [(f"`{kind.type}`", kind.when, _yes(kind.audience == "agents")) for kind in EXTENSIONS.values()]


def _delivered(kind: EventSpec) -> str:
    if kind.directed:
        return "on demand, to one endpoint"
    return "only when listed" if kind.opt_in else "by default"


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


def _section(kind: EventSpec, envelope: bytes) -> str:
    document: Any = orjson.loads(envelope)
    shown = orjson.dumps(document, option=orjson.OPT_INDENT_2).decode()
    return f"## `{kind.type}`\n\n{kind.when}\n\n```json\n{shown}\n```\n"
