"""Texts of the repository avoid wording that makes sentences hard to read; the number of its uses may only fall."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Sequence

import pytest

from tests.repository.ceilings import above, loose, read
from tests.repository.prose import (
    CEILINGS,
    Hit,
    counts,
    files_below,
    hits,
    hits_below,
    new_hits,
    room_of,
    written_lines,
)
from tests.repository.prose_patterns import PATTERNS, matches
from tests.repository.prose_texts import Kind, python_parts
from tests.support.root import ROOT

HITS = {
    "clause without a noun": [
        "What other nodes committed is read.",
        "The cache is full. Whoever asks waits.",
        "The pages: who reads them, and when.",
        "Return the ids of what was deleted.",
        "- Whatever fails is logged",
    ],
    "told": [
        "The caller is told at once.",
        "An event tells of each change.",
        "The node was not\ntold of it.",
    ],
    "tell whether": ["Tell whether the buffer is empty."],
    "as for because": [
        "It is repeated, as it may have failed.",
        "Nothing is sent, as the endpoint is disabled by its owner.",
    ],
    "for for because": ["It waits, for there is no connection.", "It waits, for the disk may be slow."],
    "antique adverb": [
        "The index is built anew.",
        "The request is sent\nonce more, with its key.",
        "The channel is held no more.",
        "The id is not listed any more, and the name stays.",
        "It hangs for ever.",
    ],
    "meanwhile, behind": [
        "Others write meanwhile.",
        "The events behind it are read.",
        "The size is known beforehand.",
    ],
    "inverted condition": ["Should it fail, the caller waits.", "The disk is read, were there a row."],
    "nobody for code": ["Then nobody reads the log.", "It waits until somebody subscribes."],
    "be it, by itself": ["Every change, be it large or small, is kept.", "The endpoint recovers by itself."],
    "let go": ["It lets the lease of a node go.", "Let go of all rows."],
    "so many": ["Return so many of the rows.", "It waits a second at the most."],
}
"""Sentences that match the pattern."""

NEAR_MISSES = {
    "clause without a noun": [
        "What is the limit of a page?",
        "What happens when the disk is full?",
        "What you need: a server and a name.",
        "The user who wrote it is named.",
        "Depends on what the receiver answers.",
    ],
    "told": ["A task that holds a lease.", "The telling detail is the status."],
    "tell whether": ["Return whether the buffer is empty."],
    "as for because": [
        "The bytes are returned, as a list.",
        "It answers 409, as the contract says.",
        "A POST is repeated, as it was before.",
        "It is given, as the reader expects, in order.",
        "It reads as they write.",
    ],
    "for for because": [
        "It waits, for example, a second.",
        "Returns a row, for each project that has members.",
    ],
    "antique adverb": [
        "There are no more pages.",
        "A batch has no more than 50 rows.",
        "At once more rows are read.",
        "Are there any more events in it?",
    ],
    "meanwhile, behind": [
        "The service runs behind a proxy.",
        "TLS ends behind the reverse proxy.",
        "A consumer that falls behind is disconnected.",
    ],
    "inverted condition": [
        "A caller should it use rarely.",
        "Why should they wait?",
        "These were the first rows.",
    ],
    "nobody for code": ["The somebodyness of words."],
    "be it, by itself": ["The limit may be its own.", "It must be it alone."],
    "let go": ["Let the others go on.", "Let the request go through the primary.", "Let the goal be clear."],
    "so many": ["There are so many rows that it takes a second.", "It keeps the most recent events."],
}
"""Sentences that are close to the pattern and are plain."""


def _names(text: str) -> list[str]:
    return [pattern.name for pattern, _, _ in matches(text)]


def test_there_are_examples_of_each_of_the_twelve_patterns() -> None:
    names = [pattern.name for pattern in PATTERNS]
    assert len(names) == 12
    assert names == [*HITS] == [*NEAR_MISSES]


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in HITS.items() for text in texts])
def test_a_sentence_with_the_wording_is_found(name: str, text: str) -> None:
    assert name in _names(text)


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in NEAR_MISSES.items() for text in texts]
)
def test_a_plain_sentence_is_not_found(name: str, text: str) -> None:
    assert name not in _names(text)


def test_a_text_of_two_words_is_not_counted() -> None:
    assert _names("Nobody waits") == []


PYTHON = '''
"""Nobody reads the docstring."""

LIMIT = 3
"""What is allowed of them,
and no more."""

def f(text="""nobody reads a default"""):
    x = [
        """nobody reads an item""",
    ]
    raise ValueError(
        "the value is refused, as it "
        f"has {x} rows, and nobody knows `what` they are",
    )  # the caller is told
    # Two lines of comment that
    # nobody has read so far.
    y = "# nobody in a string"
'''


def test_each_kind_of_text_in_python_code_is_found_with_its_line() -> None:
    found = [(hit.room, hit.line, hit.pattern) for hit in hits("storage/deskwire/storage/a.py", PYTHON)]
    assert sorted(found, key=lambda hit: hit[1]) == [
        ("docstrings: storage", 2, "nobody for code"),
        ("docstrings: storage", 5, "clause without a noun"),
        ("docstrings: storage", 6, "antique adverb"),
        ("messages: storage", 8, "nobody for code"),
        ("messages: storage", 10, "nobody for code"),
        ("messages: storage", 13, "as for because"),
        ("messages: storage", 14, "nobody for code"),
        ("comments: storage", 15, "told"),
        ("comments: storage", 17, "nobody for code"),
        ("messages: storage", 18, "nobody for code"),
    ]


@pytest.mark.parametrize(
    "folder", ["engine/deskwire/engine/core", "storage/deskwire/storage/sqlite", "tests/repository"]
)
def test_docstrings_and_comments_agree_with_ast_and_tokenize(folder: str) -> None:
    names = [name for name in files_below([folder]) if name.endswith(".py")]
    assert names
    for name in names:
        source = (ROOT / name).read_text()
        found = list(python_parts(source))
        documents = [(line, words) for kind, line, words in found if kind == "docstring"]
        comments = [(abs(line), words) for kind, line, words in found if kind == "comment"]
        assert (name, documents) == (name, sorted(_docstrings(source)))
        assert (name, comments) == (name, list(_comments(source)))


def _docstrings(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            written = (ast.get_source_segment(source, node.value) or "").lstrip("r")
            yield node.lineno, written[3:-3] if written.startswith(('"""', "'''")) else written[1:-1]


def _comments(source: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#!: ")


PAGE = """# What an import does

A [page of what](what.md#for-whom-nobody) is `for nobody`; the row
is written anew.

```sh
echo nobody
```

| What it does | Who may |
| --- | --- |
| nobody reads it | it is told of it |

- Whatever fails is logged
<!-- nobody sees this -->
"""


def test_code_addresses_and_heads_of_tables_in_pages_are_not_counted() -> None:
    found = [(hit.line, hit.pattern) for hit in hits("docs/guide/api.md", PAGE)]
    assert sorted(found) == [
        (1, "clause without a noun"),
        (3, "clause without a noun"),
        (4, "antique adverb"),
        (12, "nobody for code"),
        (12, "told"),
        (14, "clause without a noun"),
    ]


SCRIPT = """
/** What the desk shows.
 * @param {string} nobody The name of somebody */
export const t = { none: "Nobody waits for it", short: "nobody waits" };
const quotes = /["'`]/g; // the agent is told
// nobody reads
// this comment
const row = html`<b title="nobody">${`nobody ${1}`} is told of it</b>`;
"""


def test_comments_and_texts_of_the_desk_are_rooms_of_their_own() -> None:
    found = [(hit.room, hit.line, hit.pattern) for hit in hits("http/deskwire/http/pages/desk/a.js", SCRIPT)]
    assert sorted(found, key=lambda hit: (hit[1], hit[2])) == [
        ("desk: comments", 2, "clause without a noun"),
        ("desk: comments", 3, "nobody for code"),
        ("desk: messages", 4, "nobody for code"),
        ("desk: comments", 5, "told"),
        ("desk: comments", 6, "nobody for code"),
        ("desk: messages", 8, "told"),
    ]


@pytest.mark.parametrize(
    ("file", "kind", "room"),
    [
        ("engine/deskwire/engine/core/ids.py", "docstring", "docstrings: engine"),
        ("engine/deskwire/commands/backup/command.py", "message", "messages: program and commands"),
        ("http/deskwire/http/pages/desk/texts.js", "message", "desk: messages"),
        ("docs/adr/README.md", "page", "pages: decision records"),
        ("docs/reference/api.md", "page", "pages: OpenAPI and events"),
        ("docs/reference/cli.md", "page", "pages: command line and settings"),
        ("README.md", "page", "pages: README and other first pages"),
        ("docs/testing.md", "page", "pages: other pages"),
        ("benchmarks/load.py", "comment", "comments: benchmarks and tools"),
        ("tests/conftest.py", "message", None),
        ("http/deskwire/http/pages/desk/vendor/preact.js", "comment", None),
        ("storage/deskwire/storage/sqlite/migrations/m0001_the_main_job.py", "docstring", None),
    ],
)
def test_a_text_has_its_room_by_file_and_kind(file: str, kind: Kind, room: str | None) -> None:
    assert room_of(file, kind) == room


def test_a_match_names_file_line_words_pattern_and_the_wording_to_prefer() -> None:
    [hit] = hits("docs/guide/api.md", "The first line.\nThe key is written anew by each node.\n")
    assert str(hit) == (
        "docs/guide/api.md:2: “anew by each node.” (antique adverb); better: again, no longer, forever"
    )


def test_lines_that_a_difference_adds_are_read_by_file() -> None:
    difference = (
        "--- a/x.md\n+++ b/x.md\n@@ -1,0 +2,2 @@\n+a\n+b\n@@ -9 +11 @@ c\n-d\n+e\n@@ -20,3 +22,0 @@\n"
    )
    assert written_lines(difference) == {"x.md": {2, 3, 11}}


@pytest.fixture(scope="module")
def found() -> Sequence[Hit]:
    return hits_below()


def test_no_room_has_more_of_the_wording_than_its_ceiling(found: Sequence[Hit]) -> None:
    if excess := above(counts(found), read(CEILINGS)):
        rooms = ", ".join(f"{room} by {number}" for room, number in sorted(excess.items()))
        new = [str(hit) for hit in new_hits(found) if hit.room in excess]
        written = "\n".join(
            new[:40] or ["python -m tests.repository.prose PATH lists the matches below a path."]
        )
        pytest.fail(
            f"Too much wording that is hard to read, in {rooms}. Written since the ceilings were set:\n{written}"
        )


def test_ceilings_fall_with_the_counts(found: Sequence[Hit]) -> None:
    if high := loose(counts(found), read(CEILINGS)):
        rooms = "\n".join(f"{room}: {count}" for room, count in sorted(high.items()))
        pytest.fail(
            f"Ceilings stand above the counts; python -m tests.repository.prose --lower lowers them:\n{rooms}"
        )
