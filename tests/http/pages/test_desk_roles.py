"""The desk's table of roles has the service's permissions."""

from __future__ import annotations

import re

from deskwire.engine.accounts.people import PERMISSIONS
from tests.support.root import ROOT

FOLDER = ROOT / "http/deskwire/http/pages/desk/admin"
LIST = re.compile(r"const (\w+) = \[([^\]]*)\];")
TABLE = re.compile(r"export const ROLES = \{([^}]*)\};")


def shown() -> dict[str, set[str]]:
    """Return the permissions of each role, as roles.js has them."""
    text = (FOLDER / "roles.js").read_text()
    lists: dict[str, set[str]] = {}
    for name, items in LIST.findall(text):
        spread = re.findall(r"\.\.\.(\w+)", items)
        lists[name] = set(re.findall(r'"([\w.]+)"', items)).union(*(lists[each] for each in spread))
    table = TABLE.search(text)
    assert table is not None
    return {role: lists[name] for role, name in re.findall(r"(\w+): (\w+)", table[1])}


def test_roles_page_shows_the_permissions_of_each_role() -> None:
    assert shown() == {role: set(permissions) for role, permissions in PERMISSIONS.items()}


def test_every_permission_is_explained_in_words() -> None:
    explained = set(re.findall(r'"(\w+\.\w+)": "', (FOLDER / "texts.js").read_text()))
    assert explained == set(PERMISSIONS["owner"])
