"""A language of the tests: English with accents, some 40 % longer, and written from right to left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from fluent.syntax import FluentParser, FluentSerializer, ast
from fluent.syntax.visitor import Transformer

from tests.languages.compile import DESK, ENGLISH, write

PSEUDO: Final = "en-XB"
_ACCENTED: Final = str.maketrans(
    {
        **{vowel: accented * 2 for vowel, accented in zip("aeiouAEIOU", "áéíőúÁÉÍŐÚ", strict=True)},
        **dict(zip("cnsCNS", "ćńśĆŃŚ", strict=True)),
    }
)
_ABOUT: Final = f"name = Pseudo\nown-name = {'Pseudo'.translate(_ACCENTED)}\ndirection = rtl\n"


def accented(text: str) -> str:
    """Return a text in the language of the tests."""
    return text.translate(_ACCENTED)


class _Accents(Transformer):
    def visit_TextElement(self, node: ast.TextElement) -> ast.TextElement:
        return ast.TextElement(accented(node.value))


def translated(source: str) -> str:
    """Return a Fluent file in the language of the tests."""
    resource = FluentParser().parse(source)
    return FluentSerializer().serialize(_Accents().visit(resource))


def desk_with_pseudo(folder: Path) -> Path:
    """Copy the desk into a folder, add the language of the tests, and return the copy."""
    desk = folder / "desk"
    shutil.copytree(DESK, desk)
    sources = desk / "languages" / ENGLISH
    for file in sources.glob("**/*.ftl"):
        own = desk / "languages" / PSEUDO / file.relative_to(sources)
        own.parent.mkdir(parents=True, exist_ok=True)
        own.write_text(_ABOUT if file.name == "language.ftl" else translated(file.read_text()))
    write(desk)
    return desk
