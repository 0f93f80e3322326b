"""Contacts, conversations and messages in the API and in events (contract 2.10, decisions 4)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.accounts.people import AssigneeType
from deskwire.engine.conversations.activity import Action
from deskwire.engine.conversations.conversation import AuthorType, Closer, Status, TextFormat
from deskwire.engine.events.project_events import EventActorType
from deskwire.http.schemas.base import (
    ActivityId,
    ChannelId,
    ContactId,
    ConversationId,
    Count,
    Email,
    EventId,
    MessageId,
    Moment,
    PersonName,
    ProjectId,
    Shape,
    TicketId,
    UploadId,
    WorkflowId,
)
from deskwire.http.schemas.service import ProblemDocument

BackendUserId = Annotated[str, Field(description="The id of the user in your own system.", examples=["u1"])]


class ContactIdentity(Shape):
    """The identity of a contact: a customer of the project."""

    id: ContactId
    user_id: BackendUserId
    name: PersonName | None
    email: Email | None
    phone: Annotated[str, Field(examples=["+44 20 7946 0000"])] | None
    avatar: Annotated[str, Field(examples=["https://shop.example.org/ada.png"])] | None
    created_at: Moment
    updated_at: Moment


class BlockActor(Shape):
    """The user, server key or machine credential that blocked a contact, with the name at that time."""

    type: EventActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: PersonName | None


class ContactBlock(Shape):
    """The block of a contact that can read and can't write. The customer gets neither the reason nor the actor."""

    at: Moment
    by: BlockActor
    reason: Annotated[str, Field(examples=["Insults"])] | None


class Contact(ContactIdentity):
    """A contact: a customer of the project. Both your backend and agents can set its attributes and tags."""

    attributes: Annotated[dict[str, Any], Field(examples=[{"plan": "pro"}])]
    tags: Annotated[list[str], Field(examples=[["vip"]])]
    blocked: ContactBlock | None


class ConversationContact(Shape):
    """The contact of a conversation."""

    id: ContactId
    user_id: BackendUserId
    name: PersonName | None
    email: Email | None


class Assignee(Shape):
    """The user or team that a conversation is assigned to, with their name at that time."""

    type: AssigneeType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])]
    name: Annotated[str, Field(examples=["Grace Hopper"])]


RatingWords = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2_000,
        description="The contact's comment on the rating. Omitted if there is none.",
        examples=["Quick, and kind."],
    ),
]


ClientId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        description="The id that the customer's client gave it. Omitted if there is none.",
        examples=["0b9df5a2-6d1c-4f0e-9a55-0f0b6a2f4a10"],
    ),
]


class Conversation(Shape):
    """A conversation. `sequence` is that of its newest event, which shows whether a mirror is up to date.

    `channelId` is the channel in which the customer started it. It and `clientId` are omitted for conversations of other origins.

    `mergedInto` is the conversation that shows its messages, omitted if it is not merged; `merged` are the conversations whose
    messages it shows, omitted if there are none. `splitFrom` is the conversation some of whose messages it shows, because an agent
    started it with them, and `splitInto` are the conversations that were started with messages of this one; each is omitted if
    there is none.
    """

    id: ConversationId
    project_id: ProjectId
    contact: ConversationContact
    title: Annotated[str, Field(examples=["Where is my order?"])] | None
    status: Status
    closed: Annotated[bool, Field(description="True if `status` is `CLOSED`.")]
    closed_by: Closer | None
    unread: Annotated[bool, Field(description="True if the contact has messages to read.")]
    archived: bool
    assignee: Assignee | None
    attributes: Annotated[dict[str, Any], Field(examples=[{"order": "A-1001"}])]
    rating: Annotated[int, Field(ge=0, le=10, examples=[9])] | None
    ticket_id: TicketId | None
    last_message_at: Moment | None
    sequence: Count
    created_at: Moment
    updated_at: Moment
    closed_at: Moment | None
    rating_comment: RatingWords | None = None
    channel_id: ChannelId | None = None
    client_id: ClientId | None = None
    merged_into: ConversationId | None = None
    merged: list[ConversationId] | None = None
    split_from: ConversationId | None = None
    split_into: list[ConversationId] | None = None


class ListedConversation(Conversation):
    """A conversation, with its tags if requested by `include=tags`."""

    tags: Annotated[list[str], Field(examples=[["returns"]])] | None = None


class Author(Shape):
    """The author of a message."""

    type: AuthorType
    id: Annotated[str, Field(examples=["con_01KZ0000000000000000C0NTCT"])] | None
    name: PersonName | None


class Attachment(Shape):
    """A file attached to a message. Each response has a newly signed URL, which expires after 30 days."""

    id: UploadId
    name: Annotated[str, Field(examples=["label.png"])]
    type: Annotated[str, Field(description="The media type.", examples=["image/png"])]
    size: Annotated[int, Field(ge=0, description="The size in bytes.", examples=[18_211])]
    url: Annotated[str, Field(examples=["https://support.example.com/v3/uploads/upl_…/label.png?expires=…"])]


Index = Annotated[
    int, Field(ge=0, description="The position among the messages of the conversation, from 0.", examples=[0])
]


Format = Annotated[
    TextFormat,
    Field(
        description="`markdown` if the text is Markdown that readers may render; absent for plain text. The text itself is "
        "unchanged in both cases."
    ),
]


SplitInto = Annotated[
    ConversationId,
    Field(
        description="The conversation that was started with this message, and shows it, too. Omitted if there is none."
    ),
]


class MessageContent(Shape):
    """The fields that messages and notes have in common."""

    id: MessageId
    conversation_id: ConversationId
    author: Author
    text: Annotated[str, Field(examples=["Hello, where is my order?"])]
    attachments: list[Attachment]
    created_at: Moment
    redacted_at: (
        Annotated[
            Moment,
            Field(description="The time of the message's last redaction; null if there was none."),
        ]
        | None
    )
    client_id: ClientId | None = None
    format: Format | None = None
    split_into: SplitInto | None = None


class Message(MessageContent):
    """A message as the customer sees it."""

    index: Index


class Mention(Shape):
    """A user or team that a note mentions, with the name at that time: `@name` in the text."""

    type: AssigneeType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])]
    name: Annotated[str, Field(examples=["Grace Hopper"])]


class AgentMessage(MessageContent):
    """A message as agents see it. An internal message is a note to other agents, and has no index. Only notes have mentions."""

    index: Index | None
    internal: bool
    mentions: list[Mention]


class ThreadMessage(AgentMessage):
    """A message or note in its thread.

    `sequence` is that of the message's event. It is null for a note, for a message that the customer can't see yet, and for a message
    written before sequences were recorded. `seenAt` is the latest time at which the contact saw it.
    """

    sequence: Count | None
    seen_at: Moment | None


class NamedContact(Shape):
    """A contact by its ids."""

    id: ContactId
    user_id: BackendUserId


class ContactMergedProblem(ProblemDocument):
    """An error. For `contact_merged`, it has the contact that the requested one was merged into."""

    merged_into: NamedContact | None = None


class ConversationMergedProblem(ProblemDocument):
    """An error. For `conversation_merged`, it has the conversation that shows the messages of this one."""

    merged_into: ConversationId | None = None


class MessageSplitProblem(ConversationMergedProblem):
    """An error. For `message_split`, it has the conversation that was started with the message, and `mergedInto` for `conversation_merged`."""

    split_into: ConversationId | None = None


class ConversationMovedOnProblem(ConversationMergedProblem):
    """An error. For `conversation_moved_on`, it has the newer messages, and `mergedInto` for `conversation_merged`.

    `sequence` is the current one of the conversation, `since` are the newest messages and notes after the sequence of the
    reply, at most 50, oldest first.
    """

    sequence: Count | None = None
    since: list[ThreadMessage] | None = None


class LastMessage(Shape):
    """The newest message or note of a conversation, with the first 160 characters of its text."""

    id: MessageId
    author: Author
    text: Annotated[str, Field(max_length=160, examples=["Hello, where is my order?"])]
    internal: bool
    created_at: Moment


class RunningWorkflow(Shape):
    """The workflow running in a conversation. The name of a deleted workflow is null."""

    id: WorkflowId
    name: Annotated[str, Field(examples=["Orders"])] | None
    waiting: Annotated[bool, Field(description="True if a step waits for the contact.")]


class OwnConversationState(Shape):
    """The signed-in agent's read position in the conversation. Only messages of the contact are unread."""

    seen_index: Annotated[int, Field(ge=0, description="The last message seen.", examples=[3])] | None
    unread: Annotated[int, Field(ge=0, description="Messages of the contact after it.", examples=[1])]
    mentioned: Annotated[bool, Field(description="True if a note mentions you, alone or in a team.")]
    unseen_mentions: Annotated[
        int, Field(ge=0, description="Those notes that you have not seen.", examples=[0])
    ]


NoAnswerNeededSince = Annotated[
    Moment,
    Field(
        description="The time of the contact's first message without an answer, if an agent has marked that none is needed."
    ),
]


class AgentConversationSnapshot(Conversation):
    """A conversation in the agents' view within an event, without any agent's own fields."""

    visible: Annotated[bool, Field(description="False while the customer can't see it.")]
    tags: Annotated[list[str], Field(examples=[["returns"]])]
    snoozed_until: Moment | None
    waiting_since: (
        Annotated[Moment, Field(description="The time of the contact's first message without an answer.")]
        | None
    )
    no_answer_needed_since: NoAnswerNeededSince | None
    messages: Annotated[int, Field(ge=0, description="The messages that are not notes.", examples=[4])]
    last_message: LastMessage | None
    contact_seen_index: Index | None
    contact_seen_at: Moment | None
    contact_reached_index: (
        Annotated[Index, Field(description="The newest message that a client of the contact has received.")]
        | None
    )
    contact_reached_at: Moment | None
    network_logs_at: Moment | None
    workflow: RunningWorkflow | None
    followers: Annotated[
        list[Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])]],
        Field(description="The ids of the users who follow the conversation, the longest follower first."),
    ]


class AgentConversation(AgentConversationSnapshot):
    """A conversation in the agents' view.

    An event changes this object only if its id is larger than `asOf`.
    """

    as_of: Annotated[EventId, Field(description="The project's newest event at the time of this read.")]
    mine: OwnConversationState


class ConversationActor(Shape):
    """The author of a change with the name at that time: a user, a server key with its label, a machine credential, a workflow, or the service itself."""

    type: EventActorType
    id: Annotated[str, Field(examples=["usr_01KZ0000000000000000AGENT1"])] | None
    name: PersonName | None


class ConversationChange(Shape):
    """The change of a field."""

    field: Annotated[str, Field(examples=["status"])]
    from_: Annotated[Any, Field(alias="from", examples=["OPEN"])]
    to: Annotated[Any, Field(examples=["CLOSED"])]


class ConversationActivityStep(Shape):
    """The step of a workflow that made a change. `version` is null if that version is no longer stored."""

    workflow_id: WorkflowId
    version: Annotated[int, Field(ge=1, examples=[3])] | None
    action_flow_id: Annotated[str, Field(examples=["main"])]
    action_id: Annotated[int, Field(examples=[4])]


class ConversationActivity(Shape):
    """An entry of a conversation's activity: a change and its author. `eventId` is the event of the change.

    `step` is present if a step of a workflow made the change. Entries made by an earlier release lack it.
    """

    id: ActivityId
    at: Moment
    actor: ConversationActor
    action: Action
    changes: list[ConversationChange]
    event_id: EventId | None
    step: ConversationActivityStep | None = None


class ConversationTags(Shape):
    """The tags of a conversation, in order."""

    tags: Annotated[list[str], Field(examples=[["returns", "vip"]])]


class TagUsage(Shape):
    """A tag, and the number of conversations that have it."""

    name: Annotated[str, Field(examples=["returns"])]
    conversations: Count


class ConversationRating(Shape):
    """The contact's rating of a conversation."""

    rating: Annotated[int, Field(ge=0, le=10, examples=[9])]
    rated_at: Moment
    comment: RatingWords | None = None


class NetworkRequestEntry(Shape):
    """A request reported by a customer's client (contract 2.3)."""

    url: Annotated[str, Field(examples=["https://shop.example.org/cart"])]
    type: Annotated[str, Field(examples=["fetch"])] | None = None
    date: Annotated[str, Field(examples=["2026-11-01T12:00:00.000Z"])] | None = None
    duration: Annotated[float, Field(examples=[84.5])] | None = None
    success: bool | None = None
    request: Any = None
    response: Any = None
    initiator_type: Annotated[str, Field(examples=["fetch"])] | None = None


class NetworkLogs(Shape):
    """The snapshot of network requests of a conversation."""

    requests: list[NetworkRequestEntry]
