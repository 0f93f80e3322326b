"""Pages of the API reference, one for each resource: the calls with their fields, and request and response beside them.

They are made from the OpenAPI document and its examples, so that a page shows the same as `GET /v3/openapi.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from deskwire.http.description.openapi.document import document

Schema = Mapping[str, Any]

FOLDER = "reference/api"
METHODS = ("get", "post", "put", "patch", "delete")
_CREDENTIALS = {
    "serverKey": ("server key", "$KEY"),
    "accessToken": ("access token", "$TOKEN"),
    "session": ("browser session", "$TOKEN"),
    "machineCredential": ("machine credential", "$KEY"),
    "customerToken": ("customer session", "$TOKEN"),
    "metricsToken": ("metrics token", "$METRICS_TOKEN"),
}
_COMMON_SHARE = 0.5  # errors of more than this share of all calls are explained once, in the guide


_OVERVIEW = """\
Every call with its fields, a request and a response, by resource. [The API](../guide/api.md) explains credentials, errors
and lists; [errors](errors.md) has each code. Fields and parameters that are not listed are refused.

In a terminal: `deskwire reference api`. On a running service: `/docs` to try calls out, and `GET /v3/openapi.json` for
generators.
"""


@cache
def described() -> Schema:
    """Return the OpenAPI document."""
    return document()


def pages() -> dict[str, str]:
    """Return the Markdown of each resource's page by its name, in the document's order."""
    tags = [tag for tag in described()["tags"] if calls(tag["name"])]
    return {f"{FOLDER}/{make_id(tag['name'])}": _page(tag) for tag in tags}


def overview() -> str:
    """Return the Markdown of the page that lists all resources and calls."""
    parts = [
        "# API reference\n",
        _OVERVIEW,
    ]
    for tag in described()["tags"]:
        found = calls(tag["name"])
        if not found:
            continue
        page = f"api/{make_id(tag['name'])}.md"
        parts.append(f"## [{tag['name']}]({page})\n\n| Call | |\n| --- | --- |")
        parts += [
            f'| <a id="{make_id(f"{method} {path}")}"></a>`{method.upper()} {path}` | [{_title(call)}]({page}#{_anchor(call)}) |'
            for path, method, call in found
        ]
        parts.append("")
    return "\n".join(parts)


def calls(tag: str) -> list[tuple[str, str, Schema]]:
    """Return path, method and description of each call with this tag."""
    return [
        (path, method, operations[method])
        for path, operations in described()["paths"].items()
        for method in METHODS
        if method in operations and tag in operations[method].get("tags", ())
    ]


def make_id(text: str) -> str:
    """Return the anchor that docutils makes of a heading, which addresses from elsewhere contain."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _page(tag: Schema) -> str:
    head = f"# {tag['name']}\n\n{tag.get('description', '')}\n"
    return "\n".join([head, *(_call(*each) for each in calls(tag["name"]))])


def _call(path: str, method: str, call: Schema) -> str:
    """Return a call: the text in one column, request and response in the other; below each other on a small screen."""
    return "\n".join(
        [
            f"({_anchor(call)})=\n\n## {_title(call)}\n",
            '<div class="call"><div class="call-text">\n',
            f'<p class="call-line"><span class="call-{method}">{method.upper()}</span> <code>{path}</code></p>\n',
            *_text(call),
            '</div><div class="call-examples">\n',
            *_examples(path, method, call),
            "</div></div>\n",
        ]
    )


def _text(call: Schema) -> Iterator[str]:
    rest = call.get("description", "").removeprefix(call["summary"]).strip()
    if rest:
        yield f"{rest}\n"
    needed = [_CREDENTIALS[name][0] for each in call.get("security", ()) for name in each]
    yield f"Credential: {', or '.join(needed) or 'none'}.\n"
    parameters = call.get("parameters", ())
    for place, head in (("path", "Path"), ("query", "Query"), ("header", "Header")):
        rows = [
            (each["name"], each["schema"], each["required"], each.get("description", ""))
            for each in map(_resolved, parameters)
            if each["in"] == place
        ]
        yield from _table(head, rows)
    body = _body(call)
    if body is not None:
        yield from _table("Body", _properties(body[1].get("schema", {})))
    answer = _answer(call)
    if answer is not None and "schema" in answer[1]:
        yield "<details><summary>Fields of the response</summary>\n"
        yield from _table("Field", _properties(answer[1]["schema"], required=True))
        yield "</details>\n"
    codes = [f"`{code}`" for code in _codes(call)]
    if codes:
        yield f"[Errors](../errors.md): {', '.join(codes)}, and [those of every call](../../guide/api.md#errors).\n"


def _examples(path: str, method: str, call: Schema) -> Iterator[str]:
    yield f"```sh\n{_curl(path, method, call)}\n```\n"
    answer = _answer(call)
    if answer is None:
        return
    kind, content = answer
    yield f"Response, `{kind}`:\n"
    if "example" in content:
        yield f"```json\n{json.dumps(content['example'], indent=2, ensure_ascii=False)}\n```\n"


def _curl(path: str, method: str, call: Schema) -> str:
    """Return the call as a command with the examples of the document."""
    address, headers = path, []
    for each in map(_resolved, call.get("parameters", ())):
        if each["in"] == "path":
            address = address.replace(f"{{{each['name']}}}", str(each.get("example", f"{{{each['name']}}}")))
        elif each["in"] == "header" and each["name"] in ("project", "Idempotency-Key"):
            headers.append(
                f'-H "{each["name"]}: {"$PROJECT" if each["name"] == "project" else each["example"]}"'
            )
    security = [name for each in call.get("security", ()) for name in each]
    if security:
        headers.insert(0, f'-H "Authorization: Bearer {_CREDENTIALS[security[0]][1]}"')
    body = _body(call)
    if body is not None:
        kind, content = body
        if kind == "multipart/form-data":
            headers.append("-F file=@receipt.txt")
        elif kind == "application/json":
            headers += [f"-H 'Content-Type: {kind}'", f"-d {_quoted(content.get('example', {}))}"]
        else:
            headers += [f"-H 'Content-Type: {kind}'", "-T lines.ndjson"]
    verb = "" if method == ("post" if body else "get") else f"-X {method.upper()} "
    return " \\\n  ".join([f"curl {verb}$BASE{address}", *headers])


def _quoted(example: object) -> str:
    text = json.dumps(example, indent=2, ensure_ascii=False)
    return "'" + text.replace("'", "'\\''") + "'"


def _body(call: Schema) -> tuple[str, Schema] | None:
    """Return content type and content of the request's body, JSON if there are several."""
    contents = _resolved(call.get("requestBody", {})).get("content", {})
    return next(((kind, contents[kind]) for kind in sorted(contents)), None)


def _answer(call: Schema) -> tuple[str, Schema] | None:
    """Return content type and content of the success."""
    for status in sorted(call["responses"]):
        if status.startswith("2"):
            for kind, content in _resolved(call["responses"][status]).get("content", {}).items():
                return kind, content
    return None


def _resolved(schema: Schema) -> Schema:
    """Return the part of the document that a reference names, else the schema itself."""
    while "$ref" in schema:
        found: Any = described()
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part.replace("~1", "/").replace("~0", "~")]
        schema = found
    return schema


def _properties(schema: Schema, required: bool = False) -> list[tuple[str, Schema, bool, str]]:
    """Return name, schema, whether required, and description of each field; those of all parts of a union."""
    schema = _resolved(schema)
    if schema.get("type") == "array":
        schema = _resolved(schema["items"])
    parts = [
        schema,
        *map(_resolved, (*schema.get("allOf", ()), *schema.get("oneOf", ()), *schema.get("anyOf", ()))),
    ]
    rows = {}
    for part in parts:
        for name, each in part.get("properties", {}).items():
            needed = required or name in part.get("required", ())
            rows.setdefault(name, (name, each, needed, each.get("description", "")))
    if required and "items" in rows:  # a page of a list: the fields of its items
        inner = _properties(rows["items"][1].get("items", {}), required=False)
        rows |= {f"items[].{name}": (f"items[].{name}", *rest) for name, *rest in inner}
    return list(rows.values())


def _table(head: str, rows: list[tuple[str, Schema, bool, str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {head} | Type | |\n| --- | --- | --- |"
    for name, schema, needed, description in rows:
        notes = [] if needed or head in ("Query", "Field") else ["optional"]
        if "default" in schema and schema["default"] is not None:
            notes.append(f"default `{json.dumps(schema['default'])}`")
        words = " ".join((description or _resolved(schema).get("description", "")).split())
        text = ". ".join(each for each in (words.removesuffix("."), ", ".join(notes)) if each)
        yield f"| `{name}` | {_kind(schema)} | {text.replace('|', chr(92) + '|')} |"
    yield ""


def _kind(schema: Schema) -> str:
    """Return a schema's type in words: `string`, `list of object`, the values of an enumeration, …"""
    schema = _resolved(schema)
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each).strip(chr(34))}`" for each in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const']).strip(chr(34))}`"
    unions = schema.get("anyOf") or schema.get("oneOf")
    if unions:
        return " or ".join(dict.fromkeys(_kind(each) for each in unions))
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return str(kind) + _range(schema)


def _range(schema: Schema) -> str:
    low = schema.get("minimum", schema.get("minLength"))
    high = schema.get("maximum", schema.get("maxLength"))
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    return f", up to {high:,}" if high is not None else ""


def _codes(call: Schema) -> list[str]:
    """Return the error codes of a call that most other calls do not have."""
    return [code for code in _all_codes(call) if _shares()[code] <= _COMMON_SHARE]


def _all_codes(call: Schema) -> list[str]:
    return [
        code
        for status, answer in call["responses"].items()
        if status[0] in "45"
        for code in answer.get("$ref", "").rpartition("/")[2].split(".")[1:]
    ]


@cache
def _shares() -> dict[str, float]:
    """Return the share of all calls that may answer with each code."""
    found = [call for tag in described()["tags"] for _, _, call in calls(tag["name"])]
    counts: dict[str, int] = {}
    for call in found:
        for code in _all_codes(call):
            counts[code] = counts.get(code, 0) + 1
    return {code: count / len(found) for code, count in counts.items()}


def _title(call: Schema) -> str:
    """Return the summary's first sentence up to a comma, for a heading."""
    sentence = re.split(r"[.;:,](?:\s|$)", call["summary"])[0]
    return sentence.replace("`", "").replace("|", "/")


def _anchor(call: Schema) -> str:
    return f"call-{call['operationId']}".lower()
