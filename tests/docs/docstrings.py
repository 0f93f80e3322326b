"""The form of docstrings: a sentence that begins with a verb or with "The", and says what the caller gets.

`python -m tests.docs.docstrings FOLDER ...` lists those that are of another form.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

CLAUSES: Final = frozenset(
    [
        "What",
        "Whatever",
        "Which",
        "Whichever",
        "Who",
        "Whoever",
        "Whom",
        "Whose",
        "Whether",
        "When",
        "Where",
        "Why",
        "How",
        "That",
        "There",
        "It",
        "Its",
    ]
)
"""Words that begin a clause without a subject, or that refer to something not yet named."""

INDEFINITE: Final = frozenset(
    [
        "A",
        "All",
        "An",
        "Another",
        "Any",
        "As",
        "At",
        "Before",
        "Behind",
        "Between",
        "Both",
        "But",
        "By",
        "Each",
        "Every",
        "Everything",
        "Everybody",
        "For",
        "From",
        "In",
        "Into",
        "Many",
        "Most",
        "No",
        "Nobody",
        "None",
        "Nothing",
        "Of",
        "On",
        "One",
        "Only",
        "Other",
        "Others",
        "Somebody",
        "Something",
        "Since",
        "Some",
        "Such",
        "Than",
        "This",
        "Those",
        "To",
        "Until",
        "Up",
        "With",
        "Without",
    ]
)
"""Words that begin a phrase; a function does something, or is the value that it returns."""

LOOSE: Final = frozenset(
    [
        "As",
        "At",
        "Before",
        "Behind",
        "But",
        "By",
        "Everything",
        "For",
        "From",
        "In",
        "Nothing",
        "Of",
        "Something",
        "Those",
        "To",
        "With",
    ]
)
"""Words that begin a phrase which does not say what a class or module is."""


def offences(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the first line of each docstring that is of another form."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node)
        if not text:
            continue
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        first = text.split()[0].rstrip(",:;.")
        if first in CLAUSES or first in (INDEFINITE if function else LOOSE):
            yield (0 if isinstance(node, ast.Module) else node.lineno), text.splitlines()[0]


def offences_below(folder: Path) -> Iterator[str]:
    """Yield `file:line: docstring` for each offence in the modules of a folder, or in one module."""
    for path in [folder] if folder.is_file() else sorted(folder.rglob("*.py")):
        for line, text in offences(path.read_text()):
            yield f"{path}:{line}: {text}"


def main(folders: Sequence[str]) -> int:
    """Print the offences below the folders; the exit status is 1 if there are any."""
    found = [offence for folder in folders for offence in offences_below(Path(folder))]
    print("\n".join([*found, f"{len(found)} docstrings"]))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
