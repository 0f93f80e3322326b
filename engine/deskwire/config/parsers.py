"""The description of a setting, and parsers for the text of settings.

A parser turns the text of a variable or option into a value, or raises ValueError with the rest of the
sentence "<variable> ...". Parsers of settings that may hold a credential do not repeat the text.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import SplitResult, urlsplit

from deskwire.engine.accounts.identity.oidc.role_rules import ANY_VALUE, RoleRule

T = TypeVar("T")
ChoiceT = TypeVar("ChoiceT", bound=str)
Origin: TypeAlias = Literal["default", "environment", "option"]
Parser: TypeAlias = Callable[[str], T]
Network: TypeAlias = IPv4Network | IPv6Network

KIB: Final = 1024
MIB: Final = 1024 * KIB
GIB: Final = 1024 * MIB
HOUR_S: Final = 3_600.0
DAY_S: Final = 24 * HOUR_S
YEAR_S: Final = 366 * DAY_S

PREFIX: Final = "DESKWIRE_"
SECRET_CHARACTERS: Final = 32
_BUILT_IN_ROLES: Final = ("owner", "admin", "agent", "viewer")
_USUAL_PORTS: Final = frozenset({("https", 443), ("http", 80)})
FLAG_WORDS: Final = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """The description of a setting.

    Attributes:
        name: field of `Config`, which ends in the unit.
        variable: its environment variable.
        option: its command-line option, if any.
        default: the value if it is not set.
        meaning: one sentence for the reference.
        secret: whether the value must not be shown.
        masked: returns the part of a secret value that may be shown; None for nothing.
        parse: converts text to a value; raises ValueError.
        metavar: the placeholder for the value in the option's help.
        off: the help of an option that turns off a default.
    """

    name: str
    variable: str
    option: str | None
    default: object
    meaning: str
    secret: bool
    masked: Callable[[str], str] | None
    parse: Parser[object]
    metavar: str = "TEXT"
    off: str | None = None

    @property
    def of_option(self) -> str:
        """Return the help of the option."""
        return self.off or self.meaning

    def shown(self, value: object) -> str:
        """Return the value as text that the variable would accept; only the shown part of a secret."""
        if self.secret and isinstance(value, str):
            return "set" if self.masked is None else self.masked(value)
        return "unset" if value is None else as_text(value)


def setting(
    default: T,
    parse: Parser[T],
    meaning: str,
    *,
    variable: str | None = None,
    option: str | None = None,
    secret: bool = False,
    masked: Callable[[str], str] | None = None,
    metavar: str = "TEXT",
    off: str | None = None,
) -> T:
    """Return a dataclass field with the setting's description; typed as its value for the class body."""
    facts = {"parse": parse, "meaning": meaning, "variable": variable, "option": option, "masked": masked}
    shape = {"secret": secret, "metavar": metavar, "off": off}
    made: Any = field(default=default, metadata={**facts, **shape}, repr=not secret)
    value: T = made
    return value


def described(each: Field[Any]) -> Setting:
    """Return the description of a field that `setting` made."""
    facts = dict(each.metadata)
    variable = facts.pop("variable") or PREFIX + each.name.upper()
    return Setting(name=each.name, variable=variable, default=each.default, **facts)


def as_text(value: object) -> str:
    """Return a value as text for its parser: `true`, `5`, `2,6,12`, `10.0.0.0/8`."""
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return str(int(value)) if value.is_integer() else repr(value)
        case RoleRule():
            return f"{value.value}={value.role}"
        case tuple():
            separator = ";" if value and isinstance(value[0], RoleRule) else ","
            return separator.join(as_text(item) for item in value)
        case _:
            return str(value)


def integer(at_least: int, at_most: int) -> Parser[int]:
    """Return a parser for an integer in a closed range."""

    def parse(text: str) -> int:
        if not re.fullmatch(r"-?[0-9]{1,18}", text) or not at_least <= int(text) <= at_most:
            raise ValueError(f"must be a whole number from {at_least} to {at_most}, not {text!r}")
        return int(text)

    return parse


def number(at_least: float, at_most: float) -> Parser[float]:
    """Return a parser for a finite number in a closed range."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not at_least <= value <= at_most:  # false for NaN, too
            raise ValueError(f"must be a number from {as_text(at_least)} to {as_text(at_most)}, not {text!r}")
        return value

    return parse


def numbers(count: int, item: Parser[float]) -> Parser[tuple[float, ...]]:
    """Return a parser for exactly `count` numbers separated by commas."""

    def parse(text: str) -> tuple[float, ...]:
        parts = text.split(",")
        if len(parts) != count:
            raise ValueError(f"must be {count} numbers separated by commas, not {text!r}")
        return tuple(item(part.strip()) for part in parts)

    return parse


def flag(text: str) -> bool:
    """Parse `true` or `false`, also 1/0, yes/no, on/off, in any case."""
    try:
        return FLAG_WORDS[text.lower()]
    except KeyError:
        raise ValueError(f"must be true or false, not {text!r}") from None


def choice(*allowed: ChoiceT) -> Parser[ChoiceT]:
    """Return a parser for one of a few words."""

    def parse(text: str) -> ChoiceT:
        for word in allowed:
            if text == word:
                return word
        raise ValueError(f"must be one of {', '.join(allowed)}, not {text!r}")

    return parse


def several(item: Parser[T]) -> Parser[tuple[T, ...]]:
    """Return a parser for at least one item, separated by commas and without duplicates."""

    def parse(text: str) -> tuple[T, ...]:
        items = tuple(item(part.strip()) for part in text.split(","))
        if len(set(items)) < len(items):
            raise ValueError(f"must not repeat an item, unlike {text!r}")
        return items

    return parse


def words(text: str) -> str:
    """Parse a text without control characters and without blanks at its ends."""
    if not text or not text.isprintable() or text != text.strip():
        raise ValueError(f"must be printable text without blanks around it, not {text!r}")
    return text


def path(text: str) -> Path:
    """Parse a file-system path, relative to the working directory."""
    if not text or "\0" in text:
        raise ValueError(f"must be a path, not {text!r}")
    return Path(text)


def optional(parse: Parser[T]) -> Parser[T | None]:
    """Return the parser with a type that allows None, for a setting without a default value."""
    return parse


def secret_text(text: str) -> str:
    """Parse a secret, which errors never repeat."""
    if len(text) < SECRET_CHARACTERS:
        raise ValueError(f"must have at least {SECRET_CHARACTERS} characters, not {len(text)}")
    return text


def key_text(text: str) -> str:
    """Parse a key issued by another party, which errors never repeat."""
    if not text.isascii() or not text.isprintable() or " " in text:
        raise ValueError("must be printable ASCII without blanks")
    return text


def http_url(text: str) -> str:
    """Parse an absolute http(s) URL to append paths to. Return it without a final slash.

    Errors do not repeat the text, because a URL may contain a password.
    """
    reason = "must be an http or https URL with a host and without user, query or fragment"
    if not text.isprintable() or any(mark in text for mark in " @?#\\"):
        raise ValueError(reason)
    if _split(text) is None:
        raise ValueError(reason)
    return text.rstrip("/")


def web_origin(text: str) -> str:
    """Parse a web origin as browsers write it: https, or http on this machine, because tokens pass through its pages."""
    parts = _split(text)
    if parts is None or not _safe(parts) or text != _origin_of(parts):
        raise ValueError(
            "must be exact origins such as https://desk.example.com, in lower case, without path or usual port "
            f"(http only for this machine), not {text!r}"
        )
    return text


def _origin_of(parts: SplitResult) -> str | None:
    """Return a URL's origin as browsers write it; None if the host is not a plain name or address."""
    host, port = parts.hostname or "", parts.port
    if re.fullmatch(r"[a-z0-9.:-]+", host) is None:
        return None
    usual = port is None or (parts.scheme, port) in _USUAL_PORTS
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}" + ("" if usual else f":{port}")


def _split(url: str) -> SplitResult | None:
    """Return the parts of an http or https URL with a host; None for any other text."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # unbalanced brackets, or an invalid port
        return None
    return parts if usable else None


def keys_url(text: str) -> str:
    """Parse the URL of public keys: https, or http on this machine, because an altered key lets anyone sign in."""
    parts = _split(text)
    plain = text.isprintable() and " " not in text
    if parts is None or not plain or parts.fragment or parts.username is not None or not _safe(parts):
        raise ValueError("must be an https URL without user and fragment (http only for this machine)")
    return text


def issuer_url(text: str) -> str:
    """Parse the URL of an OpenID provider: https, or http on this machine. It stays as it is, because tokens repeat it."""
    if "?" in text:
        raise ValueError("must be an https URL without query, user and fragment (http only for this machine)")
    return keys_url(text)


def scopes(text: str) -> tuple[str, ...]:
    """Parse scopes (RFC 6749 3.3) separated by blanks or commas, with `openid` among them."""
    items = tuple(re.split(r"[ ,]+", text.strip()))
    if (
        any(re.fullmatch(r"[\x21\x23-\x5b\x5d-\x7e]+", each) is None for each in items)
        or "openid" not in items
    ):
        raise ValueError(
            f"must be scopes separated by blanks or commas, with openid among them, not {text!r}"
        )
    return tuple(dict.fromkeys(items))


def role_rules(text: str) -> tuple[RoleRule, ...]:
    """Parse rules `value=role` separated by semicolons, such as `desk-admins=admin;*=viewer`."""
    rules = []
    for part in text.split(";"):
        value, _, role = (each.strip() for each in part.rpartition("="))
        if not value or (role not in _BUILT_IN_ROLES and re.fullmatch(r"rol_[0-9A-Za-z]{26}", role) is None):
            raise ValueError(
                f"must be value=role with one of the roles {', '.join(_BUILT_IN_ROLES)} or rol_…, separated by semicolons, "
                f"not {part.strip()!r}"
            )
        rules.append(RoleRule(value, role))
    values = [rule.value for rule in rules]
    if len(set(values)) < len(values):
        raise ValueError(f"must not repeat a value, unlike {text!r}")
    if ANY_VALUE in values[:-1]:
        raise ValueError("must have the rule for everyone (*) as its last one")
    return tuple(rules)


def _safe(url: SplitResult) -> bool:
    """Return whether responses from the URL can't be altered on the way."""
    return url.scheme == "https" or url.hostname in {"localhost", "127.0.0.1", "::1"}


def proxy_url(text: str) -> str:
    """Parse the URL of an HTTP proxy, with optional user and password, without path. Errors never repeat it."""
    reason = "must be an http or https URL with a host and optionally a user, a password and a port"
    if not text.isascii() or not text.isprintable() or any(mark in text for mark in " ?#\\"):
        raise ValueError(reason)
    parts = _split(text)
    if parts is None or parts.path not in {"", "/"} or parts.username == "":
        raise ValueError(reason)
    return text


def mail_sender(text: str) -> str:
    """Parse the sender of mails: a plain address, or a name and an address in angle brackets."""
    name, address = sender_parts(text)
    domain = address.rpartition("@")[2]
    plain = re.fullmatch(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]+@[A-Za-z0-9.-]+", address)
    if plain is None or not domain or not name.isprintable() or any(mark in name for mark in '<>"@'):
        raise ValueError(
            f"must be an address, or a name and an address such as Support <support@example.com>, not {text!r}"
        )
    return text


def sender_parts(text: str) -> tuple[str, str]:
    """Return the name, "" for none, and the address of a sender of mails."""
    name, bracket, rest = text.rpartition("<")
    return (name.strip(), rest.removesuffix(">")) if bracket and rest.endswith(">") else ("", text)


def networks(text: str) -> tuple[Network, ...]:
    """Parse CIDR blocks separated by commas, each without host bits."""
    try:
        return tuple(ip_network(part.strip()) for part in text.split(","))
    except ValueError as error:
        raise ValueError(f"must be CIDR blocks such as 10.0.0.0/8, separated by commas: {error}") from None


def source_of(
    each: Setting, environ: Mapping[str, str], options: Mapping[str, object]
) -> tuple[Origin, str, str | None]:
    """Return the origin of a setting, its name in errors, and its text if it is set."""
    if (option := options.get(each.name)) is not None:
        return "option", each.option or each.name, as_text(option)
    if text := environ.get(each.variable):
        return "environment", each.variable, text
    return "default", each.variable, None
