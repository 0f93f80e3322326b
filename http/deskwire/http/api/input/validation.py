"""Validation of JSON bodies and query parameters, with every problem named.

Numbers are those that every JSON reader can hold (RFC 8259 6): integers of 64 bits, else doubles. A larger
integer would silently become a different double, so it is refused (ADR 5). Every text must show something and
have no U+0000.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeVar, cast

import orjson
from msgspec import Struct
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from deskwire.engine.core.clock import milliseconds
from deskwire.engine.core.errors import PROBLEMS_MAX, BadRequest, Invalid, Problem
from deskwire.engine.core.folding import BLANKS
from deskwire.engine.core.text import NUL, NUL_MESSAGE, NUL_PROBLEM_CODE, nul_paths
from deskwire.http.api.input.unknown_fields import Unknown, without_unknown
from deskwire.http.api.input.validation_messages import UNKNOWN_PARAMETER, pointer_token, problem_of

B = TypeVar("B", bound="Body")
L = TypeVar("L", bound=Sequence[str])
Q = TypeVar("Q", bound="Query")

# Up to this size all errors of a body can be made in some milliseconds, so it is validated unchanged.
_FEW_BYTES: Final = 4 * 1024


class Body(BaseModel):
    """A JSON body: camelCase, strict types, no unknown fields.

    If `as_sent`, its bytes are stored, so that a number in it may have any digits; its fields and its handler
    decide whether a text may have U+0000.
    """

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, defer_build=True)

    as_sent: ClassVar[bool] = False


class Empty(Body):
    """A body without fields, which may be omitted."""


class Query(BaseModel):
    """Query parameters: camelCase, no unknown ones."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, defer_build=True)
    # Accept any parameters, which the service ignores: the page in the browser reads them.
    anything: ClassVar[bool] = False
    # Ignore unknown parameters: mail and chat programs add theirs to a link.
    lenient: ClassVar[bool] = False

    @classmethod
    def further(cls, given: Mapping[str, str]) -> None:
        """Make the handler's own checks, so that a refusal names every problem.

        Raises BadRequest.
        """


def _flag(value: object) -> object:
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


# A query parameter that is `true` or `false`, in no other spelling.
Flag = Annotated[bool, BeforeValidator(_flag), Field(strict=True)]

_POSITIVE: Final = re.compile(r"[1-9][0-9]{0,8}")


def _positive(text: object) -> int:
    """Return the positive integer in plain digits. Raises ValueError for another text."""
    if not isinstance(text, str) or not _POSITIVE.fullmatch(text):
        raise ValueError("This must be a positive integer.")
    return int(text)


# A query parameter that is a positive integer.
Positive = Annotated[
    int,
    BeforeValidator(_positive),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": 999_999_999}),
]

# A time, as milliseconds since the epoch.
Time = Annotated[
    int, BeforeValidator(milliseconds), WithJsonSchema({"type": "string", "format": "date-time"})
]


def unique(items: L) -> L:
    """Return the list if it has no duplicates.

    It serves as a validator of pydantic.
    """
    if len(set(items)) < len(items):
        twice = sorted(item for item, count in Counter(items).items() if count > 1)
        raise PydanticCustomError(
            "duplicate", "These are given more than once: {twice}", {"twice": ", ".join(twice)}
        )
    return items


def at_most_fields(most: int) -> BeforeValidator:
    """Return a validator that refuses objects with more than `most` names.

    It runs before the values are validated.
    """

    def check(value: object) -> object:
        if isinstance(value, dict) and len(value) > most:
            raise PydanticCustomError("too_long", f"This must have at most {most:,} fields.")
        return value

    return BeforeValidator(check)


def refuse_null(body: Body, nullable: frozenset[str] = frozenset(), pointer: str = "") -> None:
    """Raise Invalid for each null of a patch in a field that null does not clear.

    Args:
        nullable: the fields that null clears.
        pointer: of the patch in the body.
    """
    nulls = sorted(name for name in body.model_fields_set - nullable if getattr(body, name) is None)
    if nulls:
        message = "This field can't be null."
        raise Invalid(*(Problem(f"{pointer}/{to_camel(name)}", "not_nullable", message) for name in nulls))


class Nulls(Struct, frozen=True):
    """A precheck of the nulls of a patch.

    See `refuse_null`. The API's description reads it as well.

    Args:
        within: the field with the patch, if the patch is not the whole body.
    """

    nullable: frozenset[str]
    within: str | None = None
    pointer: str = ""

    async def __call__(self, call: Any) -> None:
        """Raise Invalid for each null in a field that null does not clear."""
        patch = call.body if self.within is None else getattr(call.body, self.within)
        if patch is not None:
            refuse_null(patch, self.nullable, self.pointer)


def nulls(*nullable: str, within: str | None = None, pointer: str = "") -> Nulls:
    """Return a precheck of nulls, which clear the `nullable` fields of a patch."""
    return Nulls(frozenset(nullable), within, pointer)


def given_fields(body: Body, nullable: frozenset[str], pointer: str = "") -> dict[str, Any]:
    """Return the fields that a patch names, with their values.

    Args:
        nullable: the fields that null clears.
        pointer: of the patch in the body.

    Raises Invalid for a null in another field, and for a patch without fields.
    """
    refuse_null(body, nullable, pointer)
    given = {name: getattr(body, name) for name in body.model_fields_set}
    if not given:
        raise Invalid(Problem(pointer, "required", "Give at least one field to change."))
    return given


def parse_body(model: type[B], raw: bytes) -> B:
    """Return the body as its model. An empty body counts as `{}`.

    Raises:
        BadRequest: it is not JSON.
        Invalid: it does not fit; every problem is named.
    """
    try:
        value = decode_json(raw) if raw else {}
    except MalformedJson as error:
        raise BadRequest(f"The body is not valid JSON: {error}.", code="malformed_json") from None
    try:
        return validated(model, value, raw)
    except Invalid as invalid:
        if raw:
            raise
        raise Invalid(*invalid.problems, detail="The body is empty; it must be a JSON object.") from None


def validated(model: type[B], value: object, raw: bytes) -> B:
    """Return parsed JSON as its model. Raises Invalid if it does not fit.

    Every problem is named.

    Args:
        raw: the source of the value; a number in it that the value can't represent is a problem as well.
    """
    nul = () if model.as_sent else null_character_problems(value, raw)
    if not nul and len(raw) <= _FEW_BYTES:
        try:
            return _exact(model, model.model_validate(value), raw, value)
        except ValidationError:
            pass  # the code below names the problems, for bodies of any size
    unknown = Unknown()
    known = without_unknown(model, value, unknown)
    try:
        body = model.model_validate(known)
    except ValidationError as error:
        found = [problem_of(each, "/") for each in error.errors(include_url=False)]
        large, unnamed = large_integers(raw, known)
        if (
            model.as_sent
        ):  # elsewhere the parser's message would be about a double that the client has not sent
            large, unnamed = [each.pointer for each in found if each.pointer in large], 0
        others = (each for each in found if each.pointer not in large)
        problems = (*others, *map(_too_large, large), *nul, *unknown.problems)
        raise Invalid(*problems, unnamed=unnamed + unknown.unnamed) from None
    if unknown.count or nul:
        large, unnamed = large_integers(raw, known) if _takes_doubles(model) else ([], 0)
        raise Invalid(*map(_too_large, large), *nul, *unknown.problems, unnamed=unnamed + unknown.unnamed)
    return _exact(model, body, raw, known)


def _exact(model: type[B], body: B, raw: bytes, value: object) -> B:
    """Return the body if no integer in it has become a double. Raises Invalid."""
    large, unnamed = large_integers(raw, value) if _takes_doubles(model) else ([], 0)
    if large:
        raise Invalid(*map(_too_large, large), unnamed=unnamed)
    return body


@cache
def _takes_doubles(of: Hashable) -> bool:
    """True if a model or annotation accepts doubles.

    There a large integer may have become a double.
    """
    if isinstance(of, type) and issubclass(of, Body):
        return not of.as_sent and any(
            _takes_doubles(cast(Hashable, field.annotation)) for field in of.model_fields.values()
        )
    return of in (Any, float) or any(map(_takes_doubles, getattr(of, "__args__", ())))


def _too_large(pointer: str) -> Problem:
    return Problem(pointer, "too_large", INTEGER_RANGE)


def parse_query(model: type[Q], pairs: Mapping[str, list[str]]) -> Q:
    """Return the query parameters as their model.

    Raises BadRequest naming every parameter that is unknown, wrong or repeated.
    """
    if model.anything or (not pairs and not _required(model)):
        default: Q = _default(model)
        return default
    if model.lenient:
        pairs = {name: pairs[name] for name in _parameters(model) if name in pairs}
    unknown = Unknown("unknown_parameter", UNKNOWN_PARAMETER, mark="?")
    known: dict[str, list[str]] = without_unknown(model, dict(pairs), unknown)
    nul = null_character_parameters(known)
    twice = [
        Problem(f"?{name}", "repeated", "The parameter is given more than once.")
        for name, values in known.items()
        if len(values) > 1
    ]
    given = {name: values[0] for name, values in known.items()}
    try:
        parsed = model.model_validate(given)
    except ValidationError as error:
        found = [problem_of(each, "?") for each in error.errors(include_url=False)]
    else:
        if not twice and not nul and not unknown.count:
            return parsed
        found = []
    problems = (*twice, *nul, *found, *_further(model, given), *unknown.problems)
    raise bad_query(*problems, unnamed=unknown.unnamed)


def _further(model: type[Query], given: Mapping[str, str]) -> Sequence[Problem]:
    try:
        model.further(given)
    except BadRequest as refused:
        return refused.problems
    return ()


@cache
def _parameters(model: type[Query]) -> Sequence[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


@cache
def _required(model: type[Query]) -> bool:
    return any(each.is_required() for each in model.model_fields.values())


@cache
def _default(model: type[Q]) -> Q:
    """Return the query of a request without parameters.

    The instance is shared.
    """
    return model()


def bad_query(*problems: Problem, unnamed: int = 0) -> BadRequest:
    """Return the refusal of a query with all its problems.

    `unnamed` is the number of further problems.
    """
    named = ", ".join(problem.pointer[1:] for problem in problems[:PROBLEMS_MAX])
    detail = f"Query parameters are not right: {named}."
    return BadRequest(detail, code="bad_query", problems=problems, unnamed=unnamed)


# Levels of nested arrays and objects.
DEPTH_MAX: Final = 1_024

_LEAST, _MOST = -(1 << 63), (1 << 64) - 1
INTEGER_RANGE: Final = f"An integer is at least {_LEAST} and at most {_MOST}; send a larger number as a text."

# Our messages where the parser's would need an explanation.
_WORDS: Final = (
    ("depth limit exceeded", f"it is nested more than {DEPTH_MAX:,} levels deep"),
    ("number is infinity", "a number in it is too large; the largest is about 1.8e308"),
    ("byte order mark", "it begins with a byte order mark, which JSON does not have"),
    ("not valid UTF-8", "it is not in UTF-8"),
    ("surrogate", "an escape in a text stands for half a character, a surrogate without the other one"),
)

# Constants that some writers use as numbers; the parser's position is their sign or the character after it.
_CONSTANT: Final = re.compile(r".?[+-]?(?:NaN|Infinity)", re.DOTALL)

_TOKEN: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|-?[0-9][0-9.eE+-]*+|[{}\[\],:]')


class MalformedJson(ValueError):
    """The text is not JSON or exceeds a limit.

    The message continues "The body is not valid JSON: ".
    """


def decode_json(raw: bytes) -> Any:
    """Return the value of a JSON text. If a key is repeated, its last value wins.

    Raises MalformedJson.
    """
    try:
        return orjson.loads(raw)
    except orjson.JSONDecodeError as error:
        raise MalformedJson(_in_words(raw, error)) from None


def _in_words(raw: bytes, error: orjson.JSONDecodeError) -> str:
    if not raw.strip():
        return "it is empty"
    where = f" (line {error.lineno}, column {error.colno})"
    if _CONSTANT.match(error.doc, max(error.pos - 1, 0)):
        return f"NaN and Infinity are no numbers in JSON{where}"
    for sign, words in _WORDS:
        if sign in error.msg:
            return words + where
    return f"{error.msg}{where}"


class LargeIntegers(NamedTuple):
    """Integers that a value can't represent.

    `pointers` has JSON pointers to the first ones, and `unnamed` the number of the others.
    """

    pointers: list[str]
    unnamed: int


def large_integers(raw: bytes, value: Any) -> LargeIntegers:
    """Return the integers of a JSON text that its value can't represent.

    Args:
        value: the text's value; a value without a large double has no such integer.
    """
    return _large_integers(raw) if _has_large_double(value) else LargeIntegers([], 0)


def _has_large_double(value: Any) -> bool:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if type(each) is float:
            if not _LEAST < each < _MOST:  # the least double may stand for a smaller integer
                return True
        elif type(each) is dict:
            waiting += each.values()
        elif type(each) is list:
            waiting += each
    return False


def _large_integers(raw: bytes) -> LargeIntegers:
    """Return the large integers of a valid JSON text, from its tokens.

    Only the first pointers are built, because each can be as long as the text.
    """
    pointers: list[str] = []
    unnamed = 0
    for path in _paths_to_large_integers(raw):
        if len(pointers) < PROBLEMS_MAX:
            pointers.append("".join(f"/{pointer_token(str(part))}" for part in path))
        else:
            unnamed += 1
    return LargeIntegers(pointers, unnamed)


def _paths_to_large_integers(raw: bytes) -> Iterator[list[str | int]]:
    """Yield the names and indices that lead to each large integer.

    The same list is updated in place.
    """
    path: list[str | int] = []
    before = b""
    for match in _TOKEN.finditer(raw):
        piece = match[0]
        if piece == b"{":
            path.append("")
        elif piece == b"[":
            path.append(0)
        elif piece in b"]}":
            path.pop()
        elif piece == b"," and isinstance(path[-1], int):
            path[-1] += 1
        elif piece[:1] == b'"' and before in (b"{", b",") and isinstance(path[-1], str):
            path[-1] = orjson.loads(piece)
        elif (
            piece[:1] in b"-0123456789" and piece.lstrip(b"-").isdigit() and not _LEAST <= int(piece) <= _MOST
        ):
            yield path
        before = piece


# The only form in which JSON can contain U+0000 (RFC 8259 7).
_ESCAPED_NUL: Final = b"\\u0000"


def is_blank(text: str) -> bool:
    """Return whether a text has characters, all of them invisible."""
    return bool(text) and all(unicodedata.category(character) in BLANKS for character in text)


def _showing(text: str) -> str:
    if is_blank(text):
        raise PydanticCustomError("blank", "This must not be blank.")
    return text


# The mark of a text that must not be blank; its minimum length refuses an empty one.
NOT_BLANK: Final = AfterValidator(_showing)


def _whole(text: str) -> str:
    if NUL in text:
        raise PydanticCustomError(NUL_PROBLEM_CODE, NUL_MESSAGE)
    return text


# A text without U+0000, in a body that is stored as sent and may have U+0000 elsewhere.
PlainText = Annotated[str, AfterValidator(_whole)]


def matching(pattern: str, sentence: str, described: str | None = None) -> tuple[Any, ...]:
    """Return the marks of a text that must fully match a pattern.

    Args:
        sentence: the message of the refusal.
        described: the pattern in ECMA 262 syntax for the API's description, if that differs.
    """
    matches = re.compile(pattern).fullmatch

    def check(text: str) -> str:
        if text and matches(text) is None:
            raise PydanticCustomError("form", "{sentence}", {"sentence": sentence})
        return text

    return AfterValidator(check), Field(json_schema_extra={"pattern": described or f"^(?:{pattern})$"})


def null_character_problems(value: Any, raw: bytes) -> tuple[Problem, ...]:
    """Return a problem for each of the first texts of a JSON value that have U+0000.

    Args:
        raw: the source of the value; without an escaped U+0000 the value is not searched.
    """
    if _ESCAPED_NUL not in raw:
        return ()
    paths = islice(nul_paths(value), PROBLEMS_MAX)
    return tuple(
        Problem("".join(f"/{pointer_token(str(part))}" for part in path), NUL_PROBLEM_CODE, NUL_MESSAGE)
        for path in paths
    )


def null_character_parameters(pairs: dict[str, list[str]]) -> tuple[Problem, ...]:
    """Return a problem for each query parameter whose value has U+0000."""
    return tuple(
        Problem(f"?{name}", NUL_PROBLEM_CODE, NUL_MESSAGE)
        for name, values in pairs.items()
        if any(NUL in v for v in values)
    )
