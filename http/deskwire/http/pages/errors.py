"""The page of error codes, to which the `type` of every problem document leads."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from html import escape
from typing import Final

from deskwire.http.api.output.static import Static

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.4rem 0.8rem 0.4rem 0; border-bottom: 1px solid #8884; }
tr:target { background: #fc06; }
"""
_DIGEST: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()

# The page loads nothing and has no other style (CSP 3).
POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{_DIGEST}'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_PAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Deskwire errors</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<h1>Errors</h1>
<p>An error is a problem document (RFC 9457). Its <code>code</code> is stable, and its <code>type</code> leads to the entry of the code on
this page. Quote its <code>requestId</code> in questions about it.</p>
<h2>Codes</h2>
<table>
<tr><th>Status</th><th>Code</th><th>Meaning</th></tr>
{codes}
</table>
<h2>Codes of single problems</h2>
<p>The values of <code>errors[].code</code>, each for one place in a body or a query.</p>
<table>
<tr><th>Code</th><th>Meaning</th></tr>
{problems}
</table>
</body>
</html>
"""


def error_page(codes: Iterable[tuple[str, str, str]], problems: Mapping[str, str]) -> Static:
    """Return the page.

    Args:
        codes: the status as shown, the code, and its meaning. The code is the anchor of its entry.
        problems: the meaning of each code of a single problem.
    """
    rows = [
        f'<tr id="{escape(code)}"><td>{escape(status)}</td><td><code>{escape(code)}</code></td><td>{_text(meaning)}</td></tr>'
        for status, code, meaning in codes
    ]
    single = [
        f'<tr id="problem-{escape(code)}"><td><code>{escape(code)}</code></td><td>{_text(meaning)}</td></tr>'
        for code, meaning in problems.items()
    ]
    page = _PAGE.format(style=_STYLE, codes="\n".join(rows), problems="\n".join(single))
    return Static.of("text/html; charset=utf-8", page.encode())


def _text(meaning: str) -> str:
    """Return a meaning as HTML, with text in backticks as code."""
    parts = escape(meaning, quote=False).split("`")
    return "".join(f"<code>{part}</code>" if index % 2 else part for index, part in enumerate(parts))
