"""Wording that makes sentences hard to read, counted by room, with a ceiling for each room that may only fall.

python -m tests.repository.prose              each room: matches, ceiling, matches in 1,000 sentences
python -m tests.repository.prose docs/guide   every match in files below a path
python -m tests.repository.prose --new        the matches on lines that came after the ceilings
python -m tests.repository.prose --lower      lower the ceilings to the counts
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tests.repository.ceilings import git, lower, read
from tests.repository.prose_patterns import matches
from tests.repository.prose_texts import Kind, texts
from tests.support.root import ROOT

CEILINGS: Final = "tests/repository/prose_ceilings.json"

_AREAS: Final = (
    ("engine", ("engine/deskwire/engine/",)),
    ("program and commands", ("engine/",)),
    ("http", ("http/",)),
    ("storage", ("storage/",)),
    ("tests", ("tests/",)),
    ("benchmarks and tools", ("",)),
)
_PAGES: Final = (
    ("README and other first pages", ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/index.md")),
    ("changelog", ("CHANGELOG.md", "docs/changelog.md")),
    ("guarantees", ("docs/guarantees.md",)),
    ("guides", ("docs/guide/", "docs/quickstart.md", "docs/concepts.md")),
    ("decision records", ("docs/adr/",)),
    (
        "OpenAPI and events",
        ("docs/reference/api.md", "docs/reference/events.md", "docs/reference/surveys.md"),
    ),
    ("command line and settings", ("docs/reference/cli.md", "docs/reference/settings.md")),
    ("errors and metrics", ("docs/reference/",)),
    ("other pages", ("",)),
)
_DESK: Final = ("http/deskwire/http/pages/desk/", "http/deskwire/http/pages/assets/")
_UNSHOWN: Final = ("tests/", "benchmarks/", "release/", "binary/", "docs/")
_SKIPPED: Final = re.compile(r"/vendor/|^benchmarks/results/|/migrations/m\d")
"""Code of others, records of measurements, and migrations, which stay as they were released."""

_SENTENCE_END: Final = re.compile(r"[.;:!?](?:\s|\Z)|\Z")


class Hit(NamedTuple):
    """A match of a pattern: its room, file, line, words, the pattern's name, and the wording to prefer."""

    room: str
    file: str
    line: int
    words: str
    pattern: str
    better: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: “{self.words}” ({self.pattern}); better: {self.better}"


def room_of(file: str, kind: Kind) -> str | None:
    """Return the room of a text by its file and kind; None for a text that is not counted."""
    if _SKIPPED.search(file):
        return None
    if file.startswith(_DESK):
        return f"desk: {kind}s"
    if kind == "page":
        return f"pages: {_first(_PAGES, file)}"
    if kind == "message" and file.startswith(_UNSHOWN):
        return None
    return f"{kind}s: {_first(_AREAS, file)}"


def _first(rooms: Iterable[tuple[str, tuple[str, ...]]], file: str) -> str:
    return next(room for room, paths in rooms if file.startswith(paths))


def hits(file: str, source: str) -> Iterator[Hit]:
    """Yield each match in the texts of a file."""
    for kind, line, words in texts(file, source):
        room = room_of(file, kind)
        for pattern, start, end in matches(words) if room else ():
            found = " ".join([*words[start:end].split(), *words[end:].split()[:4]])
            yield Hit(
                room or "", file, line + words.count("\n", 0, start), found, pattern.name, pattern.better
            )


def files_below(paths: Sequence[str] = ()) -> list[str]:
    """Return the names of the repository's files, and of new ones that are not ignored."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *paths)
    return sorted({name for name in listed.split("\0") if name and (ROOT / name).is_file()})


def hits_below(paths: Sequence[str] = ()) -> list[Hit]:
    """Return the matches in all files, or in those below some paths, in the order of their places."""
    names = [name for name in files_below(paths) if name.endswith((".py", ".md", ".js"))]
    return sorted(
        (hit for name in names for hit in hits(name, (ROOT / name).read_text())),
        key=lambda hit: (hit.file, hit.line),
    )


def counts(found: Iterable[Hit]) -> Counter[str]:
    """Return the number of matches in each room."""
    return Counter(hit.room for hit in found)


def new_hits(found: Iterable[Hit]) -> list[Hit]:
    """Return the matches on lines that were written after the commit that last changed the ceilings."""
    commit = git("log", "-1", "--format=%H", "--", CEILINGS).strip()
    written = written_lines(git("diff", "--no-color", "--no-ext-diff", "-U0", commit)) if commit else {}
    untracked = {*git("ls-files", "-z", "--others", "--exclude-standard").split("\0")}
    return [hit for hit in found if hit.file in untracked or hit.line in written.get(hit.file, ())]


def written_lines(difference: str) -> dict[str, set[int]]:
    """Return the numbers of the lines that a difference adds to each file."""
    written: dict[str, set[int]] = {}
    file = ""
    for line in difference.splitlines():
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif found := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, number = int(found[1]), int(found[2] or 1)
            written.setdefault(file, set()).update(range(first, first + number))
    return written


def _sentences() -> Counter[str]:
    """Return the number of sentences and clauses in each room."""
    found: Counter[str] = Counter()
    for name in files_below():
        if name.endswith((".py", ".md", ".js")):
            for kind, _, words in texts(name, (ROOT / name).read_text()):
                if len(words.split(None, 3)) > 2 and (room := room_of(name, kind)):
                    found[room] += len(_SENTENCE_END.findall(words.strip())) - 1 or 1
    return found


def _table() -> Iterator[str]:
    now, limits, sentences = counts(hits_below()), read(CEILINGS), _sentences()
    yield f"{'room':42} {'matches':>8} {'ceiling':>8} {'in 1,000 sentences':>19}"
    for room in sorted({*now, *limits}):
        rate = round(1000 * now[room] / sentences[room]) if sentences[room] else 0
        yield f"{room:42} {now[room]:8} {limits.get(room, 0):8} {rate:19}"
    rate = round(1000 * now.total() / sentences.total())
    yield f"{'all':42} {now.total():8} {sum(limits.values()):8} {rate:19}"


def main(arguments: Sequence[str]) -> int:
    """Print the table, the matches below some paths or the new ones, or lower the ceilings."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.repository.prose", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("paths", nargs="*", help="files and folders whose matches are listed")
    parser.add_argument(
        "--new", action="store_true", help="list the matches on lines that came after the ceilings"
    )
    parser.add_argument("--lower", action="store_true", help="lower the ceilings to the counts")
    chosen = parser.parse_args(arguments)
    if chosen.lower:
        print(
            "\n".join(f"{room}: {count}" for room, count in lower(CEILINGS, counts(hits_below())).items())
            or "No ceiling can be lowered."
        )
    elif chosen.new or chosen.paths:
        found = hits_below(chosen.paths)
        found = new_hits(found) if chosen.new else found
        print("\n".join([*map(str, found), f"{len(found)} matches"]))
    else:
        print("\n".join(_table()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
