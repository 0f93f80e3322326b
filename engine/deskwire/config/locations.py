"""The places of rows and files besides the data directory: the URL of a PostgreSQL, and the place of uploads.

Nothing of a driver is needed to read or show them, as a program without one has to say what is wrong, too.
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
_OURS: Final = frozenset({"application_name", "client_encoding", "target_session_attrs"})
"""Options of a connection that this program sets by itself."""
_LONE_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SECONDS: Final = re.compile(r"[1-9][0-9]{0,5}")
_SECRET_OPTION: Final = re.compile(r"(?i)(?<=[?&])([a-z_]*(?:password|secret|token)[a-z_]*)=[^&]*")
_NODE: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,46}[A-Za-z0-9])?")
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")


def database_url(text: str) -> str:
    """Parse the URL of a PostgreSQL database. It is never repeated in an error, as it may have a password in it."""
    parts = _DATABASE.fullmatch(text)
    if parts is None or not text.isprintable() or " " in text:
        raise ValueError(
            "must be a URL such as postgresql://user:password@host:5432/database, with what is special in a password "
            "written as %40 for @, %3A for :, %2F for /"
        )
    if _LONE_PERCENT.search(text):
        raise ValueError(
            "must have % as %25, in a password as well, unless it begins a character's code such as %40"
        )
    if not all(_HOST.fullmatch(host) for host in parts["hosts"].split(",")):
        raise ValueError("must have hosts as host:port, with commas between them")
    options = parts["query"].split("&") if parts["query"] else []
    if not all(_OPTION.fullmatch(option) for option in options):
        raise ValueError("must have its options as ?name=value&name=value, such as ?sslmode=verify-full")
    for name, _, value in (option.partition("=") for option in options):
        if name in _OURS:
            raise ValueError(f"must be without the option {name}, which Deskwire sets itself")
        if name == "connect_timeout" and _SECONDS.fullmatch(value) is None:
            raise ValueError("must have whole seconds, at least 1, as its connect_timeout")
    return text


def shown_database(url: str) -> str:
    """Return the URL without what is secret in it."""
    parts = _DATABASE.fullmatch(url)
    assert parts is not None, "it was parsed"
    user = "" if parts["user"] is None else f"{parts['user']}{f':{HIDDEN}' if parts['password'] else ''}@"
    query = "" if parts["query"] is None else _SECRET_OPTION.sub(rf"\1={HIDDEN}", f"?{parts['query']}")
    return f"{parts['scheme']}{user}{parts['hosts']}{parts['database'] or ''}{query}"


def has_secret(url: str) -> bool:
    """Return whether the URL of a database has a password, or another secret among its options."""
    return HIDDEN in shown_database(url)


def files_place(text: str) -> str:
    """Parse the place of uploads: `disk`, `database`, or the URL of a bucket, `s3://bucket/prefix?endpoint=…`."""
    if text in {"disk", "database"}:
        return text
    parts = urlsplit(text)
    options = [option.partition("=")[0] for option in parts.query.split("&")] if parts.query else []
    plain = text.isascii() and text.isprintable() and " " not in text
    if parts.scheme != "s3" or not plain or parts.fragment or _BUCKET.fullmatch(parts.netloc) is None:
        raise ValueError(
            "must be disk, database, or s3://bucket/prefix (keys are taken from AWS_ACCESS_KEY_ID and its like)"
        )
    if strange := sorted(set(options) - {"endpoint", "region"}):
        raise ValueError(f"must have no options of s3:// but endpoint and region, not {', '.join(strange)}")
    return text


def place_of(files: str) -> str:
    """Return where uploads are, without what may be another for each node, as the way to a bucket."""
    parts = urlsplit(files)
    return files if parts.scheme != "s3" else f"s3://{parts.netloc}{parts.path.rstrip('/')}"


def node_name(text: str) -> str:
    """Parse a node's name, which stands in logs, metrics, and PostgreSQL's list of sessions."""
    if _NODE.fullmatch(text) is None:
        raise ValueError(f"must be up to 48 letters, digits, dots, dashes or underscores, not {text!r}")
    return text
