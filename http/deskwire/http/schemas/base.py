"""Parts of the objects in responses: ids, times, pages, deletions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import get_annotations
from types import new_class
from typing import Annotated, Any, ClassVar, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema

S = TypeVar("S", bound="Shape")

_ULID: Final = "_[0-7][0-9A-HJKMNP-TV-Z]{25}$"


class _Kind(type):
    """The metaclass of shapes, which mypy needs to accept them as hashable."""


class Shape(metaclass=_Kind):
    """An object in a response, with every possible field.

    A field with a default is optional, but never null. A shape is a plain class, which the reference turns into a pydantic
    model (`model_of`): the service needs no models, which would take a tenth of its start and 4 MB (ADR 29).
    """

    _title: ClassVar[str | None] = None

    def __init_subclass__(cls, title: str | None = None) -> None:
        """Set a public name that differs from the class's."""
        if title is not None:
            cls._title = title

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema of its model."""
        return handler(model_of(cls))


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """Return the schema, in which optional fields have neither null nor a default."""
        schema: dict[str, Any] = handler.resolve_ref_schema(handler(core_schema))
        required = schema.get("required", ())
        for name, field in schema.get("properties", {}).items():
            if name not in required and field.get("default", ...) is None:
                field.pop("default")
                for option in field.pop("anyOf", ()):
                    field.update({} if option.get("type") == "null" else {**option, **field})
        return schema


@cache
def model_of(shape: type[Shape | BaseModel]) -> type[BaseModel]:
    """Return the pydantic model of a shape; a model is returned unchanged."""
    if issubclass(shape, BaseModel):
        return shape
    if shape is Shape:
        return _Model
    fields, own = get_annotations(shape), vars(shape)
    namespace = {
        "__module__": shape.__module__,
        "__qualname__": shape.__qualname__,
        "__doc__": own["__doc__"],
    }
    namespace |= {"__annotations__": fields} | {name: own[name] for name in fields if name in own}
    named = {"title": own["_title"]} if "_title" in own else {}
    bases = tuple(model_of(base) for base in shape.__bases__)
    return new_class(shape.__name__, bases, named, lambda body: body.update(namespace))


def shape_of(name: str, base: type[S], meaning: str | None, fields: Mapping[str, Any]) -> type[S]:
    """Return a shape made at run time: a base with further required fields and their annotations."""
    body = {"__module__": __name__, "__doc__": meaning, "__annotations__": {**fields}}
    return new_class(name, (base,), {}, lambda own: own.update(body))


OrganisationId = Annotated[str, Field(pattern=f"^org{_ULID}", examples=["org_01KZ0000000000000000000RG1"])]
ProjectId = Annotated[str, Field(pattern=f"^prj{_ULID}", examples=["prj_01KZ000000000000000000SH0P"])]
UserId = Annotated[str, Field(pattern=f"^usr{_ULID}", examples=["usr_01KZ0000000000000000AGENT1"])]
RoleId = Annotated[
    str,
    Field(
        pattern=f"^(owner|admin|agent|viewer|rol{_ULID.removesuffix('$')})$",
        examples=["agent"],
        description="`owner`, `admin`, `agent`, `viewer`, or the id of one of the organisation's own roles.",
    ),
]
KeyId = Annotated[str, Field(pattern=f"^key{_ULID}", examples=["key_01KZ00000000000000000000K1"])]
MachineId = Annotated[str, Field(pattern=f"^mcr{_ULID}", examples=["mcr_01KZ0000000000000000000M01"])]
TokenId = Annotated[
    str, Field(pattern="^tok_[0-9A-Za-z]{26,64}$", examples=["tok_01KZ00000000000000000000A1"])
]
InvitationId = Annotated[str, Field(pattern=f"^inv{_ULID}", examples=["inv_01KZ00000000000000000000J1"])]
PasskeyId = Annotated[str, Field(pattern=f"^pky{_ULID}", examples=["pky_01KZ00000000000000000000P1"])]
PushId = Annotated[str, Field(pattern=f"^psn{_ULID}", examples=["psn_01KZ00000000000000000000N1"])]
SessionId = Annotated[str, Field(pattern=f"^ses{_ULID}", examples=["ses_01KZ00000000000000000000B1"])]
CustomerSessionId = Annotated[str, Field(pattern=f"^cse{_ULID}", examples=["cse_01KZ00000000000000000000N1"])]
ContactId = Annotated[str, Field(pattern=f"^con{_ULID}", examples=["con_01KZ0000000000000000C0NTCT"])]
ConversationId = Annotated[str, Field(pattern=f"^cnv{_ULID}", examples=["cnv_01KZ00000000000000000000C1"])]
MessageId = Annotated[str, Field(pattern=f"^msg{_ULID}", examples=["msg_01KZ00000000000000000000M1"])]
EventId = Annotated[str, Field(pattern=f"^evt{_ULID}", examples=["evt_01KZ00000000000000000000E1"])]
DeliveryId = Annotated[str, Field(pattern=f"^dlv{_ULID}", examples=["dlv_01KZ00000000000000000000D1"])]
EndpointId = Annotated[str, Field(pattern=f"^whk{_ULID}", examples=["whk_01KZ0000000000000000000W01"])]
TicketId = Annotated[str, Field(pattern=f"^tkt{_ULID}", examples=["tkt_01KZ00000000000000000000T1"])]
TeamId = Annotated[str, Field(pattern=f"^team{_ULID}", examples=["team_01KZ0000000000000000TEAM01"])]
SurveyId = Annotated[str, Field(pattern=f"^srv{_ULID}", examples=["srv_01KZ00000000000000000000S1"])]
ResponseId = Annotated[str, Field(pattern=f"^rsp{_ULID}", examples=["rsp_01KZ00000000000000000000R1"])]
UploadId = Annotated[str, Field(pattern=f"^upl{_ULID}", examples=["upl_01KZ00000000000000000000VP"])]
WorkflowId = Annotated[str, Field(pattern=f"^wfl{_ULID}", examples=["wfl_01KZ00000000000000000000F1"])]
MemoryId = Annotated[str, Field(pattern=f"^mem{_ULID}", examples=["mem_01KZ00000000000000000MEM01"])]
SnippetId = Annotated[str, Field(pattern=f"^snp{_ULID}", examples=["snp_01KZ0000000000000000SN1PPT"])]
ViewId = Annotated[str, Field(pattern=f"^viw{_ULID}", examples=["viw_01KZ0000000000000000V1EW01"])]
BulkJobId = Annotated[str, Field(pattern=f"^blk{_ULID}", examples=["blk_01KZ0000000000000000000B1K"])]
ChannelId = Annotated[str, Field(pattern=f"^chn{_ULID}", examples=["chn_01KZ00000000000000000CHAN1"])]
ActivityId = Annotated[str, Field(pattern=f"^act{_ULID}", examples=["act_01KZ00000000000000000000A1"])]

Moment = Annotated[
    str,
    Field(
        description="A time in ISO 8601, UTC, with milliseconds.",
        pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
        examples=["2026-11-01T12:00:00.000Z"],
        json_schema_extra={"format": "date-time"},
    ),
]
Count = Annotated[int, Field(ge=0, examples=[1])]
Email = Annotated[str, Field(examples=["ada@example.org"])]
PersonName = Annotated[str, Field(examples=["Ada Lovelace"])]
Url = Annotated[
    str, Field(examples=["https://crm.example.org/deskwire"], json_schema_extra={"format": "uri"})
]


def public_name(model: type[Shape | BaseModel]) -> str:
    """Return the name of a model's schema in the API's description: its `title`, else the class's name.

    A renamed class keeps its public name with a title: `class New(Shape, title="Old")`.
    """
    title = model._title if issubclass(model, Shape) else model.model_config.get("title")
    return title or model.__name__


class Listed(Shape):
    """A page of a list. `nextCursor` is the `cursor` of the next page, null on the last page."""

    next_cursor: Annotated[str, Field(examples=["WzE3NjI1XQ"])] | None


@cache
def page_of(item: type[Shape | BaseModel]) -> type[Listed]:
    """Return the shape of a page of these objects."""
    fields = {"items": list[item]}  # type: ignore[valid-type]  # made at run time
    return shape_of(f"{public_name(item)}Page", Listed, Listed.__doc__, fields)


class ListedAsOf(Listed):
    """A page of a list, and the time of its first page. Events after `asOf` show further changes.

    `asOf` is the id of the project's newest event when the first page was read, for `after` of the event feed. It is the
    same on every page of the list. `nextCursor` is the `cursor` of the next page, null on the last page.
    """

    as_of: EventId


@cache
def page_as_of(item: type[Shape]) -> type[ListedAsOf]:
    """Return the shape of a page of these objects with `asOf`."""
    fields = {"items": list[item]}  # type: ignore[valid-type]  # made at run time
    return shape_of(f"{public_name(item)}PageAsOf", ListedAsOf, ListedAsOf.__doc__, fields)


class Deleted(Shape):
    """The confirmation of a permanent deletion."""

    id: Annotated[
        str, Field(description="The id of the deleted object.", examples=["cnv_01KZ00000000000000000000C1"])
    ]
    deleted: Annotated[bool, Field(json_schema_extra={"const": True})]
