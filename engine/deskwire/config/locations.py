"""Parsers for the locations of data outside the data directory: a PostgreSQL URL, and the storage of uploads.

They need no driver, so that a program without one can report problems, too.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

HIDDEN: Final = "***"
_DATABASE: Final = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^:@/?#]*)(?P<password>:[^@/?#]*)?@)?"
    r"(?P<hosts>[^@/?#]*)(?P<database>/[^/?#]*)?(?:\?(?P<query>[^#?]*))?"
)
_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9._%-]*)(?::[0-9]{1,5})?")
_OPTION: Final = re.compile(r"[a-z_]+=.*")
_OURS: Final = frozenset(
    {"application_name", "client_encoding", "target_session_attrs"}
)  # set by this program itself
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,5}")
_SECRET_OPTION: Final = re.compile(r"(?i)(?<=[?&])([a-z_]*(?:password|secret|token)[a-z_]*)=[^&]*")
_NODE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,46}[A-Za-z0-9])?")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def database_url(text: str) -> str:
    """Parse the URL of a PostgreSQL database. Errors never repeat it, because it may have a password."""
    parts = _DATABASE.fullmatch(text)
    if parts is None or not text.isprintable() or " " in text:
        raise ValueError(
            "must be a URL such as postgresql://user:password@host:5432/database, with special characters of a password "
            "percent-encoded: %40 for @, %3A for :, %2F for /"
        )
    if _LONE_PERCENT.search(text):
        raise ValueError(
            "must have % as %25 (in a password, too), unless it begins a character's code such as %40"
        )
    if not all(_HOST.fullmatch(host) for host in parts["hosts"].split(",")):
        raise ValueError("must have hosts as host:port, with commas between them")
    options = parts["query"].split("&") if parts["query"] else []
    if not all(_OPTION.fullmatch(option) for option in options):
        raise ValueError("must have its options as ?name=value&name=value, such as ?sslmode=verify-full")
    for name, _, value in (option.partition("=") for option in options):
        if name in _OURS:
            raise ValueError(f"must not have the option {name}, which Deskwire sets itself")
        if name == "connect_timeout" and _SECONDS.fullmatch(value) is None:
            raise ValueError("must have whole seconds, at least 1, as its connect_timeout")
    return text


def shown_database(url: str) -> str:
    """Return the URL without secrets."""
    parts = _DATABASE.fullmatch(url)
    assert parts is not None, "it was parsed"
    user = "" if parts["user"] is None else f"{parts['user']}{f':{HIDDEN}' if parts['password'] else ''}@"
    query = "" if parts["query"] is None else _SECRET_OPTION.sub(rf"\1={HIDDEN}", f"?{parts['query']}")
    return f"{parts['scheme']}{user}{parts['hosts']}{parts['database'] or ''}{query}"


def has_secret(url: str) -> bool:
    """Return whether a database URL has a password or another secret."""
    return HIDDEN in shown_database(url)


def files_place(text: str) -> str:
    """Parse the storage of uploads: `disk`, `database`, or a bucket's URL, `s3://bucket/prefix?endpoint=…`."""
    if text in {"disk", "database"}:
        return text
    parts = urlsplit(text)
    options = [option.partition("=")[0] for option in parts.query.split("&")] if parts.query else []
    plain = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme != "s3" or not plain or parts.fragment or _BUCKET.fullmatch(parts.netloc) is None:
        raise ValueError(
            "must be disk, database, or s3://bucket/prefix (keys are read from AWS_ACCESS_KEY_ID and related variables)"
        )
    if strange := sorted(set(options) - {"endpoint", "region"}):
        raise ValueError(f"must have only the options endpoint and region of s3://, not {', '.join(strange)}")
    return text


def place_of(files: str) -> str:
    """Return the storage of uploads without parts that may differ between nodes, such as an endpoint."""
    parts = urlsplit(files)
    return files if parts.scheme != "s3" else f"s3://{parts.netloc}{parts.path.rstrip('/')}"


def node_name(text: str) -> str:
    """Parse a node's name, which appears in logs, metrics, and PostgreSQL's list of sessions."""
    if _NODE.fullmatch(text) is None:
        raise ValueError(f"must be up to 48 letters, digits, dots, dashes or underscores, not {text!r}")
    return text
