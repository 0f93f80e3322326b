"""The reasons why a PostgreSQL refuses a session, as sentences that say what to do.

libpq gives no code for a session that was not begun, only the server's words; those are kept in each sentence.
"""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from deskwire.storage.postgres.driver.unusable import DatabaseUnusableError

_ADVICE: Final = (
    (
        r"password authentication failed|no password supplied|no pg_hba\.conf entry|Peer authentication|Ident auth",
        (
            "refuses this user. Look at user and password in DESKWIRE_DATABASE_URL (what is special in a password is written as "
            "%40 for @, %2F for /), and at the server's pg_hba.conf"
        ),
    ),
    (
        r'database ".*" does not exist',
        (
            "has no such database. Create it (`CREATE DATABASE deskwire ENCODING 'UTF8' TEMPLATE template0`), or correct "
            "DESKWIRE_DATABASE_URL"
        ),
    ),
    (r'role ".*" does not exist', "has no such user. Create it, or correct DESKWIRE_DATABASE_URL"),
    (
        r"permission denied for database",
        "does not let this user into the database: GRANT CONNECT, CREATE ON DATABASE … TO …",
    ),
    (
        r"too many (connections|clients)|remaining connection slots",
        "has no session left. A node takes up to 23, more with DESKWIRE_READ_CONNECTIONS: raise max_connections, or the user's CONNECTION LIMIT",
    ),
    (
        r"starting up|shutting down|not yet accepting connections|in recovery mode",
        "is starting, recovering or stopping. Start the node again when it is up",
    ),
    (
        r"is a primary that was replaced|is another one \(system identifier",
        "is not the one to use",
    ),
    (
        r"session is read-only|hot standby mode|server is in recovery|cannot execute .* in a read-only",
        (
            "is a standby, or takes no writes. Name the primary in DESKWIRE_DATABASE_URL, or all hosts with commas between them: "
            "the one that takes writes is found"
        ),
    ),
    (
        r"unsupported startup parameter",
        (
            "is behind a pooler that does not pass a session's settings on, as PgBouncer. Name PostgreSQL itself in "
            "DESKWIRE_DATABASE_URL: a node keeps its sessions open and needs no pooler"
        ),
    ),
    (
        r"certificate|SSL|GSSAPI",
        "and this node do not agree about encryption. Look at sslmode and sslrootcert",
    ),
    (
        r"[Cc]onnection refused|could not translate|[Nn]ame or service|timed? ?out|No route|unreachable|No such file|no answer within|could not look up",
        "can't be reached. Look whether it runs, and at host and port in DESKWIRE_DATABASE_URL",
    ),
)
_UNKNOWN_OPTION: Final = re.compile(r'invalid (?:URI query parameter|connection option):? "([a-z_]+)"')


def unreachable(url: str, error: psycopg.Error | str) -> DatabaseUnusableError:
    """Return what to tell the operator of a session that could not be begun."""
    words = " ".join(str(error).split())
    advice = next((advice for pattern, advice in _ADVICE if re.search(pattern, words)), "can't be used")
    return DatabaseUnusableError(f"The PostgreSQL {place(url)} {advice}. It was said: {words}")


def parts_of(url: str) -> dict[str, Any]:
    """Return the parts of a URL. Raises DatabaseUnusableError, which repeats nothing of it but the name of an option."""
    try:
        return conninfo_to_dict(url)
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN_OPTION.search(str(error))
    what = f"has the option {unknown[1]}, which" if unknown else "is written in a way that"
    raise DatabaseUnusableError(
        f"The URL of the PostgreSQL {what} PostgreSQL's client library does not know. Look at DESKWIRE_DATABASE_URL; it is not "
        "repeated here, as a password may be in it."
    )


def place(url: str) -> str:
    """Return where a database is, without who goes there. Raises DatabaseUnusableError as `parts_of` does."""
    parts = parts_of(url)
    hosts = str(parts.get("host") or parts.get("hostaddr") or "on this machine")
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"{hosts}{port}/{parts.get('dbname') or parts.get('user') or ''}"
