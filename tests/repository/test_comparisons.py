"""No secret is compared in a way whose duration reveals how much of it is right (ADR 25)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.support.root import ROOT

SUSPECT: Final = re.compile(
    r"secret|password|passwd|token|signature|digest|hmac|hash|credential|authorization|(?:server|stream|api)_key"
)

HARMLESS: Final = {
    "engine/deskwire/engine/surveys/insights/text_analysis/clauses.py: tokens[place - 1][2] in language.lexicon.words('too')": "words of a comment",
    "engine/deskwire/engine/audit/audited_changes.py: after.password_hash != before.password_hash": "two hashes of our own",
    "engine/deskwire/engine/audit/audited_changes.py: after.sealed_secret != before.sealed_secret": "two sealed ones of our own",
    "engine/deskwire/engine/accounts/identity/password_strength.py: rest != password": "a new password beside a part of itself",
    "http/deskwire/http/resources/accounts/tokens.py: normal_password(new) == normal_password(present)": "two passwords of one body",
    "http/deskwire/http/resources/accounts/tokens.py: now.password_hash == user.password_hash": "two hashes of our own",
    "engine/deskwire/engine/importing/records.py: stored in (fingerprint(record), _hash(_of_message(record, record.author_name)))": "a record sent again beside the one that is stored",
    "engine/deskwire/engine/importing/records.py: stored == _hash(_with_contact(record))": "the same of one that was stored by an earlier release",
    "engine/deskwire/commands/convert/markup.py: token.value in _RAW": "a token of HTML: the name of an element",
    "engine/deskwire/logs/redaction.py: word.lower() in SECRET_WORDS": "a word of a name in the log, as `token`",
    "http/deskwire/http/api/auth/sessions.py: hashed not in known": "a hash among those of valid sessions that were looked up",
    "http/deskwire/http/stream/websocket.py: b'upgrade' not in tokens": "the tokens of the header `Connection`",
    "storage/deskwire/storage/postgres/admin/check.py: _digest(files, content, size) != content.sha256": "bytes beside their name",
    "storage/deskwire/storage/postgres/admin/installation.py: secret_id not in identity.secret_ids": "an id that is no secret",
    "storage/deskwire/storage/tables/audit_push.py: before.sealed_secret != push.sealed_secret": "two sealed ones of our own",
    "engine/deskwire/engine/webhooks/worker.py: before.reason == SECRET_LOST": "the reason for which an endpoint is disabled",
    "engine/deskwire/program/installation.py: claimed == ANY_SECRET": "the id of a secret, or the mark that any will do",
    "engine/deskwire/program/installation.py: claimed in (ANY_SECRET, *ids)": "ids of secrets, which are none",
    "engine/deskwire/engine/webhooks/dispatcher.py: supervised.worker.breaker.circuit.reason == SECRET_LOST": "the reason for which an endpoint is disabled",
    "http/deskwire/http/api/auth/credential_caches.py: identity.token in known.ids": "the id of a token, which is no secret",
    "engine/deskwire/config/conflicts.py: (config.smtp_user is None) != (config.smtp_password_file is None)": "settings, by whether they are given",
    "engine/deskwire/engine/accounts/access_tokens.py: token.id == current": "the ids of tokens",
    "http/deskwire/http/api/auth/customers.py: hashed in self._known": "the digest of a random token, which the cache is keyed by",
    "engine/deskwire/engine/accounts/identity/oidc/provider.py: '?' in metadata.authorization_endpoint": "a public URL",
    "storage/deskwire/storage/tables/accounts/factors.py: self.conn.execute(sql, (user, hashed)).rowcount == 1": "a number of rows",
    "http/deskwire/http/stream/protocol.py: stream_key != project.stream_key": "a stream key is public, as Pusher's app key is",
}
"""Comparisons whose names suggest a secret but that compare none, with the reason."""

OPERATORS: Final = ("archive", "check", "restore", "unpack")
"""Modules of commands that operators run on their own files, where no attacker can measure the time."""


def comparisons() -> Iterator[str]:
    """Yield every `==`, `!=` and `in` with an operand named like a secret, as `file: expression`."""
    for layer in ("engine", "http", "storage"):
        for path in sorted((ROOT / layer).rglob("*.py")):
            if path.parent.name in ("backup", "sqlite") and path.stem in OPERATORS:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Compare) and _by_value(node) and SUSPECT.search(_names(node)):
                    yield f"{path.relative_to(ROOT)}: {ast.unparse(node)}"


def _by_value(node: ast.Compare) -> bool:
    return any(isinstance(each, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for each in node.ops)


def _names(node: ast.AST) -> str:
    found = (getattr(each, "id", None) or getattr(each, "attr", None) for each in ast.walk(node))
    return " ".join(filter(None, found)).lower()


@pytest.mark.thorough
def test_every_comparison_that_names_a_secret_is_constant_in_time_or_about_something_else() -> None:
    assert set(comparisons()) == HARMLESS.keys()
