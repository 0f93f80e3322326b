"""The bodies of the routes of channels, and the problems that concern several fields together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, ValidationInfo
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.identity.algorithms import Algorithm
from deskwire.engine.channels.channel import (
    DEFAULT_COLOUR,
    ORIGINS_MAX,
    PUBLIC_KEYS_MAX,
    VISITOR_FIELDS,
    Channel,
    ChannelType,
    IdentityMode,
    Look,
    Position,
    PublicKey,
)
from deskwire.engine.channels.origin import ORIGIN_LENGTH_MAX, parse_pattern
from deskwire.engine.channels.public_keys import PEM_LENGTH_MAX, PublicKeyRefused, canonical_public_key
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.core.text import canonical_language_tag
from deskwire.engine.ports import Reader
from deskwire.http.api.input.validation import (
    NOT_BLANK,
    Body,
    at_most_fields,
    given_fields,
    matching,
    nulls,
    refuse_null,
    unique,
)
from deskwire.http.resources.fields import Name

LANGUAGES_MAX: Final = 40
_OPTIONAL: Final = "?"

# The fields of a change that null clears.
NULLABLE: Final = ("hours", "starts_workflow", "survey")
_OBJECTS: Final = ("identity", "visitors", "look")
# The prechecks of the objects within a change, whose fields can't be null.
NESTED: Final = tuple(nulls(within=name, pointer=f"/{name}") for name in _OBJECTS)


def _origin(text: str) -> str:
    found = parse_pattern(text)
    if isinstance(found, str):
        raise PydanticCustomError("origin", "{reason}", {"reason": found})
    return found.text


def _key(text: str, info: ValidationInfo) -> str:
    algorithm = info.data.get("algorithm")
    if algorithm is None:  # it is a problem of its own
        return text
    try:
        return canonical_public_key(text, algorithm)
    except PublicKeyRefused as refused:
        raise PydanticCustomError("public_key", "{reason}", {"reason": str(refused)}) from None


def _own_ids(keys: list[PublicKeyBody]) -> list[PublicKeyBody]:
    unique([each.id for each in keys])
    return keys


def _asked_once(fields: list[str]) -> list[str]:
    unique([each.removesuffix(_OPTIONAL) for each in fields])
    return fields


def _by_language(texts: dict[str, WidgetTextsBody]) -> dict[str, WidgetTextsBody]:
    """Return the texts by their tags in the usual case. Raises a problem that names each wrong tag."""
    tags = {given: canonical_language_tag(given) for given in texts}
    if wrong := [given for given, tag in tags.items() if tag is None]:
        message = "These are not language tags (BCP 47), such as en or pt-BR: {wrong}"
        raise PydanticCustomError("language", message, {"wrong": ", ".join(wrong)})
    unique([str(tag) for tag in tags.values()])
    return {str(tags[given]): each for given, each in texts.items()}


Origins = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=ORIGIN_LENGTH_MAX), AfterValidator(_origin)]],
    Field(max_length=ORIGINS_MAX, examples=[["https://shop.example", "https://*.shop.example"]]),
    AfterValidator(unique),
]
Colour = Annotated[
    str,
    *matching("#[0-9A-Fa-f]{6}", "A colour is written #rrggbb."),
    AfterValidator(str.lower),
    Field(examples=[DEFAULT_COLOUR]),
]
AskedField = Annotated[
    str,
    *matching(
        rf"({'|'.join(VISITOR_FIELDS)})\??",
        "This is name, email or phone, with ? at the end if it may stay empty.",
    ),
]
AskedFields = Annotated[
    list[AskedField],
    Field(max_length=len(VISITOR_FIELDS), examples=[["name?", "email"]]),
    AfterValidator(_asked_once),
]
ObjectId = Annotated[str, Field(min_length=1, max_length=40)]


def _no_schedule(schedule_id: str) -> str:
    raise ValueError("There are no schedules of business hours yet: this must be null.")


ScheduleId = Annotated[
    str,
    Field(min_length=1, max_length=40, description="Business hours do not exist yet: only null is accepted."),
    AfterValidator(_no_schedule),
]


class PublicKeyBody(Body):
    """A key that verifies identities. Tokens may name its `id` as `kid`."""

    id: Annotated[str, Field(min_length=1, max_length=100), NOT_BLANK]
    algorithm: Algorithm
    key: Annotated[str, Field(min_length=1, max_length=PEM_LENGTH_MAX), AfterValidator(_key)]


class WidgetTextsBody(Body):
    """The texts of the widget in one language."""

    title: Annotated[str, Field(min_length=1, max_length=60), NOT_BLANK]
    greeting: Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK]
    placeholder: Annotated[str, Field(min_length=1, max_length=100), NOT_BLANK] | None = None
    offline: Annotated[str, Field(min_length=1, max_length=500), NOT_BLANK] | None = None


PublicKeys = Annotated[list[PublicKeyBody], Field(max_length=PUBLIC_KEYS_MAX), AfterValidator(_own_ids)]
Texts = Annotated[
    dict[str, WidgetTextsBody],
    Field(max_length=LANGUAGES_MAX),
    AfterValidator(_by_language),
    at_most_fields(LANGUAGES_MAX),
]


class IdentityBody(Body):
    """The sign-in of customers. A list of keys replaces all keys."""

    mode: IdentityMode | None = None
    public_keys: PublicKeys | None = None


class VisitorsBody(Body):
    """Customers who are not signed in."""

    allowed: bool | None = None
    ask: AskedFields | None = None


class LookBody(Body):
    """The appearance of the widget. `texts` replaces the texts of all languages."""

    colour: Colour | None = None
    position: Position | None = None
    texts: Texts | None = None


class ChangeChannelRequest(Body):
    """The fields to change; within `identity`, `visitors` and `look`, too. Lists and `texts` are replaced as a whole."""

    name: Name | None = None
    enabled: bool | None = None
    origins: Origins | None = None
    identity: IdentityBody | None = None
    visitors: VisitorsBody | None = None
    look: LookBody | None = None
    hours: ScheduleId | None = None
    starts_workflow: ObjectId | None = None
    survey: ObjectId | None = None
    native: bool | None = None


class CreateChannelRequest(ChangeChannelRequest):
    """The new channel. Without `origins` only the service's own pages may show it."""

    type: ChannelType = "widget"
    name: Name


class CheckSiteRequest(Body):
    """The page to check."""

    url: Annotated[str, Field(min_length=1, examples=["https://shop.example/help"])]


def check_nulls(body: ChangeChannelRequest) -> None:
    """Raise Invalid for a body without fields, and for a null in a field that null does not clear."""
    given_fields(body, frozenset(NULLABLE))
    for name in _OBJECTS:
        if (given := getattr(body, name)) is not None:
            refuse_null(given, pointer=f"/{name}")


def changes_of(body: ChangeChannelRequest, before: Channel) -> dict[str, Any]:
    """Return the fields of the channel that a body sets, by their names in `Channel`."""
    given = body.model_fields_set
    found: dict[str, Any] = {
        name: getattr(body, name)
        for name in ("name", "enabled", "starts_workflow", "survey", "native")
        if name in given
    }
    if body.origins is not None:
        found["origins"] = tuple(body.origins)
    return found | dict(_nested(body, before))


def _nested(body: ChangeChannelRequest, before: Channel) -> Iterator[tuple[str, Any]]:
    if (identity := body.identity) is not None:
        if identity.mode is not None:
            yield "identity_mode", identity.mode
        if identity.public_keys is not None:
            yield (
                "public_keys",
                tuple(PublicKey(each.id, each.algorithm, each.key) for each in identity.public_keys),
            )
    if (visitors := body.visitors) is not None:
        if visitors.allowed is not None:
            yield "visitors_allowed", visitors.allowed
        if visitors.ask is not None:
            yield "visitors_ask", tuple(visitors.ask)
    if (look := body.look) is not None:
        texts = (
            before.look.texts
            if look.texts is None
            else {language: each.model_dump(exclude_none=True) for language, each in look.texts.items()}
        )
        yield "look", Look(look.colour or before.look.colour, look.position or before.look.position, texts)


def check_settings(reader: Reader, project: int, before: Channel, after: Channel) -> None:
    """Raise Invalid for settings that contradict each other, and for a new workflow or survey that does not exist."""
    problems = [*_contradictions(after)]
    workflow, survey = after.starts_workflow, after.survey
    if workflow not in (None, before.starts_workflow) and reader.workflow(project, str(workflow)) is None:
        problems.append(Problem("/startsWorkflow", "unknown", "There is no such workflow in this project."))
    if survey not in (None, before.survey) and reader.survey(project, str(survey)) is None:
        problems.append(Problem("/survey", "unknown", "There is no such survey in this project."))
    if problems:
        raise Invalid(*problems)


def _contradictions(channel: Channel) -> Iterator[Problem]:
    if channel.identity_mode != "none":
        return
    if not channel.visitors_allowed:
        message = "With `identity.mode` none only visitors can write, so they must be allowed."
        yield Problem("/visitors/allowed", "contradiction", message)
    if channel.native:
        message = "`native` accepts signed identities only, and `identity.mode` is none."
        yield Problem("/native", "contradiction", message)
