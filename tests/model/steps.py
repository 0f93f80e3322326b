"""The steps that examples consist of, with their shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hypothesis import strategies as st

from tests.model.commands import (
    Assign,
    Close,
    Create,
    Delete,
    Fetch,
    Label,
    Messages,
    NetworkLogs,
    Note,
    Patch,
    Rate,
    Read,
    Reopen,
    Reply,
    Say,
    Start,
)
from tests.model.commands import Step as PendingStep
from tests.model.content import Content, Translate
from tests.model.customers import Erase, Forget, ListOf, Mark, Merge, PutContact, Recall, Remember, Rename
from tests.model.held import Hold, SendHeld, TakeBack
from tests.model.machines import ActAs, LookAtMachine, MakeMachine, Revoke, Rotate
from tests.model.play import Again, AtOnce, Doze, Elapse, Step
from tests.model.reports import BYS, KINDS, LookAtReport
from tests.model.rewriting import DeleteMessage, Redact
from tests.model.surveys import (
    DEFINITIONS,
    WRONG,
    ListSurveys,
    LookAtSurvey,
    MakeSurvey,
    PatchSurvey,
    Publish,
    RemoveSurvey,
    Respond,
    Responses,
    Validate,
    Version,
    Versions,
)
from tests.model.things import EXTENSIONS
from tests.model.tickets import (
    Bulk,
    ChangeTicket,
    Link,
    ListTickets,
    LookAtTicket,
    MakeTicket,
    RemoveTicket,
    Snooze,
)
from tests.model.waiting import NoAnswer, WaitAgain
from tests.model.webhooks import (
    NO_CATCH_UP,
    NO_EVENT,
    NO_WAY,
    NOTES,
    AddEndpoint,
    Deliveries,
    DropEndpoint,
    ListEndpoints,
    LookAtEndpoint,
    PatchEndpoint,
)

BEGINNING: Final[tuple[Step, ...]] = (
    Create("ada", text="Hello"),
    Create("bob", visible=False),
    MakeTicket(),
    AddEndpoint(("message.created", "conversation.closed")),
    Publish(0, "short"),
    Start(0),
    AddEndpoint((NOTES, *sorted(EXTENSIONS)), internal=True),
    MakeMachine(),
)
PLACES: Final = st.sampled_from([0, 0, 0, 0, 1, 1, 1, 2, 7])
"""Mostly objects that exist from the beginning."""
USERS: Final = st.sampled_from(["ada", "ada", "bob", "böb ?"])
TEXTS: Final = st.sampled_from(["Hello", "é\u202e\U0001f600", '"\\\n', "x" * 300])
VALUES: Final[st.SearchStrategy[object]] = st.sampled_from(
    [None, None, 0, 1, True, 1.5, "a", [1, None], {"a": {}}, 2**53]
)
ATTRIBUTES: Final = st.dictionaries(st.sampled_from(["a", "b", "ä~/"]), VALUES, max_size=2)
IDENTITIES: Final = st.fixed_dictionaries(
    {}, optional={"name": st.sampled_from([None, "Ada", "Eve"]), "email": st.sampled_from([None, "a@b.test"])}
)
PATCHES: Final = st.fixed_dictionaries(
    {},
    optional={
        "title": st.sampled_from([None, "A", "B"]),
        "archived": st.booleans(),
        "status": st.sampled_from(["OPEN", "PENDING"]),
        "attributes": ATTRIBUTES,
        "visible": st.sampled_from([True, True, False]),
    },
).filter(bool)
ENTRIES: Final = st.sampled_from(["statictranslation:a", f"article:{'0a' * 12}"])
LANGUAGES: Final = st.sampled_from([None, "en", "de"])
PRIORITIES: Final = st.sampled_from(["LOW", "URGENT"])
TAGS: Final = st.sampled_from([(), ("a",), ("a", "ß")])

CREATES: Final = st.builds(
    Create,
    USERS,
    IDENTITIES,
    st.sampled_from([None, "A"]),
    ATTRIBUTES,
    st.sampled_from([True, True, False]),
    st.none() | TEXTS,
)
SAYS: Final = st.builds(Say, PLACES, st.sampled_from(["contact", "contact", "agent", "bot", "system"]), TEXTS)
STARTS: Final = st.builds(Start, st.just(0) | PLACES)
REPLIES: Final = st.builds(Reply, st.just(0) | PLACES, st.sampled_from(["yes", "no", "never"]))
ON_CONVERSATION: Final = st.one_of(
    SAYS,
    st.builds(Close, PLACES, st.sampled_from(["agent", "bot", "system"])),
    st.builds(Reopen, PLACES),
    st.builds(Assign, PLACES, st.booleans()),
    st.builds(Read, PLACES),
    st.builds(Rate, PLACES, st.sampled_from([0, 5, 10, 11, -1])),
    st.builds(Patch, PLACES, PATCHES),
    st.builds(Label, PLACES, TAGS),
    st.builds(NoAnswer, PLACES, st.sampled_from([0, 0, 1, 2, 3, 9])),
    st.builds(WaitAgain, PLACES),
    STARTS,
    REPLIES,
    st.builds(NetworkLogs, PLACES, st.sampled_from([0, 3, 101])),
    st.builds(Fetch, PLACES),
    st.builds(PendingStep, PLACES),
)
CONTACTS: Final = st.builds(PutContact, st.sampled_from(["ada", "bob"]), IDENTITIES) | st.builds(
    Mark,
    st.sampled_from(["ada", "bob"]),
    st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from([1, True, "x", None]), max_size=2),
    st.lists(st.sampled_from(["vip", "web"]), max_size=2),
)
CONTACTS_PATCHED: Final = st.builds(Rename, st.sampled_from(["ada", "bob"]), IDENTITIES.filter(bool))
MERGES: Final = st.builds(Merge, USERS, USERS)
REWRITES: Final = st.builds(
    Redact,
    PLACES,
    st.sampled_from([0, 0, 1, 2, 3, 4, 9]),
    st.sampled_from([None, ((0, 1),), ((0, 2),), ((1, 3), (2, 5)), ((0, 1), (4, 999))]),
) | st.builds(DeleteMessage, PLACES, st.sampled_from([0, 1, 2, 3, 9]))
MACHINES: Final = st.sampled_from([0, 0, 0, 1, 7])
USES: Final = st.builds(ActAs, MACHINES, st.sampled_from(["current", "current", "previous", "ended"]))
REVOCATIONS: Final = st.builds(Revoke, MACHINES)
OF_MACHINES: Final = st.one_of(
    USES,
    USES,
    st.builds(Rotate, MACHINES, st.sampled_from([0, 3_600])),
    REVOCATIONS,
    st.builds(MakeMachine, st.sampled_from([("tickets.manage", "tickets.read"), ("tickets.read",), ()])),
    st.builds(LookAtMachine, MACHINES),
)
DAY_S: Final = 86_400
AHEAD_S: Final = st.sampled_from([None, 3_600, 3_600, 90_000, 9 * 365 * DAY_S, 11 * 366 * DAY_S, -60])
"""Seconds until a snooze ends; times past ten years and in the past are refused."""
DURATIONS_S: Final = st.sampled_from([None, None, 0, 0, 90, 90, 7_200.5, -1])
TICKET_PLACES: Final = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 1, 7])
TICKETS: Final = st.builds(
    MakeTicket, PRIORITIES, TAGS, st.none() | PLACES, st.sampled_from([None, None, 3_600])
)
SNOOZES: Final = st.builds(Snooze, TICKET_PLACES, st.just({}), st.just(False), AHEAD_S)
CHANGES: Final = st.one_of(
    st.builds(
        ChangeTicket,
        TICKET_PLACES,
        st.fixed_dictionaries({"status": st.sampled_from(["OPEN", "DONE"])}),
        st.booleans(),
    ),
    st.builds(ChangeTicket, TICKET_PLACES, st.just({"title": "Another", "tags": []})),
    SNOOZES,
)
BULKS: Final = st.builds(
    Bulk,
    st.lists(TICKET_PLACES, min_size=1, max_size=4).map(tuple),
    st.sampled_from([None, 1, 2]),
    st.none() | PRIORITIES,
    st.booleans(),
    DURATIONS_S,
)

ENDPOINTS: Final = st.sampled_from([1, 1, 1, 1, 1, 1, 2, 2, 3, 9])
"""All but the first, which belongs to the test."""
EVENTS: Final = st.sampled_from(
    [
        (),
        (),
        ("message.created",),
        ("message.created",),
        ("conversation.updated", "contact.updated"),
        ("contact.merged", "message.created", "ticket.changed"),
        (NOTES,),
        (NO_EVENT,),
    ]
)
CATCH_UPS: Final = st.sampled_from([*["automatic", "off"] * 4, NO_CATCH_UP, None])
ENDPOINT_PATCHES: Final = st.fixed_dictionaries(
    {},
    optional={
        "events": EVENTS.map(list) | st.just(["conversation.deleted", "conversation.closed"]),
        "status": st.sampled_from([*["enabled", "disabled"] * 4, "paused"]),
        "description": st.sampled_from([None, "CRM"]),
        "catchUp": CATCH_UPS,
        "url": st.sampled_from([*["a", "b"] * 4, NO_WAY, None]),
        "internal": st.booleans(),
    },
).filter(bool)
SWITCHES: Final = st.sampled_from(["enabled", "disabled"]).map(lambda to: {"status": to})
CHANGES_OF_ENDPOINTS: Final = st.one_of(
    st.builds(PatchEndpoint, ENDPOINTS, ENDPOINT_PATCHES),
    st.builds(PatchEndpoint, ENDPOINTS, ENDPOINT_PATCHES),
    st.builds(PatchEndpoint, ENDPOINTS, SWITCHES),
    st.builds(PatchEndpoint, ENDPOINTS, SWITCHES),
)
REMOVALS_OF_ENDPOINTS: Final = st.builds(DropEndpoint, ENDPOINTS)
OF_ENDPOINTS: Final = st.one_of(
    CHANGES_OF_ENDPOINTS,
    CHANGES_OF_ENDPOINTS,
    st.builds(AddEndpoint, EVENTS, CATCH_UPS),
    REMOVALS_OF_ENDPOINTS,
    st.builds(LookAtEndpoint, ENDPOINTS),
    st.builds(ListEndpoints),
    st.builds(Deliveries, ENDPOINTS),
)

SURVEYS: Final = st.sampled_from([0, 0, 0, 0, 0, 0, 1, 1, 7])
RIGHT_OR_WRONG: Final = st.sampled_from([*["usual", "short"] * 3, *WRONG])
NAMES: Final = st.sampled_from(["After", "before ä"])
VERSIONS: Final = st.sampled_from([None, None, 1, 2])
ANSWERS: Final = st.sampled_from(
    [
        {"score": 0, "why": "slow", "plan": "pro"},
        {"score": 5, "why": "slow"},
        {"score": 9, "plan": "free"},
        {"score": 10},
        {"score": 10, "why": "slow"},
        {"score": 11},
        {"why": "slow"},
    ]
)
RESPONDS: Final = st.builds(Respond, SURVEYS, USERS, ANSWERS, VERSIONS)
MAKES_OF_SURVEYS: Final = st.builds(MakeSurvey, NAMES, RIGHT_OR_WRONG)
PUBLISHES: Final = st.builds(Publish, SURVEYS, RIGHT_OR_WRONG)
SURVEY_PATCHES: Final = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from([*["After", "Ä"] * 3, ""]),
        "status": st.sampled_from([*["OPEN", "OPEN", "CLOSED"] * 3, "PAUSED"]),
    },
).filter(bool)
CHANGES_OF_SURVEYS: Final = st.one_of(
    st.builds(PatchSurvey, SURVEYS, SURVEY_PATCHES),
    st.builds(PatchSurvey, SURVEYS, SURVEY_PATCHES),
    PUBLISHES,
    RESPONDS,
    RESPONDS,
)
REMOVALS_OF_SURVEYS: Final = st.builds(RemoveSurvey, SURVEYS)
OF_SURVEYS: Final = st.one_of(
    CHANGES_OF_SURVEYS,
    CHANGES_OF_SURVEYS,
    MAKES_OF_SURVEYS,
    REMOVALS_OF_SURVEYS,
    st.builds(LookAtSurvey, SURVEYS, st.booleans()),
    st.builds(ListSurveys, st.sampled_from([None, "OPEN", "CLOSED"]), st.sampled_from([None, "fter", "ORE"])),
    st.builds(Versions, SURVEYS),
    st.builds(Version, SURVEYS, st.sampled_from([0, 1, 2])),
    st.builds(Validate, SURVEYS, RIGHT_OR_WRONG),
    st.builds(PatchSurvey, SURVEYS, st.just({"definition": DEFINITIONS["short"]})),
    st.builds(Responses, SURVEYS, VERSIONS),
)
OF_TICKETS: Final[st.SearchStrategy[Step]] = st.one_of(
    CHANGES,
    BULKS,
    BULKS,
    st.builds(Doze, TICKET_PLACES),
    st.builds(LookAtTicket, TICKET_PLACES),
    st.builds(ListTickets, st.sampled_from([None, True, False])),
    st.builds(RemoveTicket, TICKET_PLACES),
    st.builds(Link, TICKET_PLACES, st.just({}), st.just(False), st.none() | PLACES),
)
BACKGROUND: Final = st.one_of(
    st.builds(Messages, PLACES),
    st.builds(ListOf, st.sampled_from(["ada", "bob"]), st.sampled_from([None, "OPEN", "CLOSED"])),
    st.builds(Delete, PLACES),
    st.builds(Erase, st.sampled_from(["ada", "bob"])),
    st.builds(Remember, st.sampled_from(["ada", "bob"]), st.sampled_from(["likes", "ö"]), TEXTS),
    st.builds(Recall, st.sampled_from(["ada", "bob"])),
    st.builds(Forget, st.sampled_from(["ada", "bob"])),
    st.builds(Translate, ENTRIES, LANGUAGES, TEXTS),
    st.builds(Content, ENTRIES, LANGUAGES),
    st.builds(Note, PLACES, TEXTS),
    st.builds(LookAtReport, st.sampled_from(KINDS), st.sampled_from(BYS)),
)
TOGETHER: Final = st.one_of(
    ON_CONVERSATION,
    ON_CONVERSATION,
    REWRITES,
    CREATES,
    CONTACTS,
    TICKETS,
    CHANGES,
    st.builds(Delete, PLACES),
)
KEYED: Final = st.one_of(
    CREATES,
    SAYS,
    STARTS,
    REPLIES,
    TICKETS,
    REWRITES.filter(lambda command: isinstance(command, Redact)),
    st.builds(Note, PLACES, TEXTS),
    st.builds(Remember, st.sampled_from(["ada", "bob"]), st.sampled_from(["likes", "ö"]), TEXTS),
    st.builds(AddEndpoint),
    MAKES_OF_SURVEYS,
    PUBLISHES,
    RESPONDS,
)
HELD_PLACES: Final = st.sampled_from([0, 0, 0, 1, 1, 2, 9])
HOLDS: Final = st.builds(Hold, PLACES, TEXTS)
ENDS_OF_HOLDS: Final = st.builds(TakeBack, HELD_PLACES) | st.builds(SendHeld, HELD_PLACES)
HELD: Final[st.SearchStrategy[Step]] = st.one_of(
    HOLDS,
    HOLDS,
    ENDS_OF_HOLDS,
    ENDS_OF_HOLDS,
    st.builds(Elapse, PLACES, st.tuples(TEXTS, TEXTS)),
)
FIRST_ENDS: Final[st.SearchStrategy[Step]] = st.one_of(
    st.just(TakeBack(0)),
    st.just(SendHeld(0)),
    st.builds(AtOnce, st.just(TakeBack(0)), st.just(SendHeld(0)) | HOLDS | st.builds(Delete, PLACES)),
    st.builds(AtOnce, st.just(SendHeld(0)), st.just(SendHeld(0)) | HOLDS | st.builds(Delete, PLACES)),
)
"""Steps that end the message held first in each example."""
SHARES: Final[Mapping[st.SearchStrategy[Step], int]] = {
    ON_CONVERSATION: 6,
    CREATES: 1,
    CONTACTS | CONTACTS_PATCHED: 1,
    MERGES: 1,
    REWRITES: 2,
    HELD: 2,
    OF_MACHINES: 1,
    TICKETS: 1,
    OF_TICKETS: 4,
    BACKGROUND: 3,
    OF_ENDPOINTS: 4,
    OF_SURVEYS: 4,
    st.builds(AtOnce, TOGETHER, TOGETHER): 2,
    st.builds(AtOnce, MERGES, ON_CONVERSATION | REWRITES) | st.builds(AtOnce, USES, REVOCATIONS): 1,
    st.builds(AtOnce, CHANGES_OF_ENDPOINTS, CHANGES_OF_ENDPOINTS | REMOVALS_OF_ENDPOINTS): 1,
    st.builds(AtOnce, CHANGES_OF_SURVEYS, CHANGES_OF_SURVEYS | REMOVALS_OF_SURVEYS): 1,
    st.builds(AtOnce, ENDS_OF_HOLDS, HOLDS | ENDS_OF_HOLDS | st.builds(Delete, PLACES)): 1,
    st.builds(Again, KEYED, st.booleans()): 1,
}
STEPS: Final[st.SearchStrategy[Step]] = st.sampled_from(
    [steps for steps, share in SHARES.items() for _ in range(share)]
).flatmap(lambda steps: steps)
"""Not one strategy of all steps, which would give each kind of call the same share."""


def _holding(text: str, steps: list[Step], end: Step, at: int) -> list[Step]:
    """Return the steps with a held message before them and its end among them."""
    return [Hold(0, text), *steps[:at], end, *steps[at:]]


RANDOM_STEPS: Final = st.builds(
    _holding, TEXTS, st.lists(STEPS, min_size=8, max_size=20), FIRST_ENDS, st.integers(0, 20)
)
"""Examples that each hold a message and end it, so that the floor of held messages does not depend on chance."""
