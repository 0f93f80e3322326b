"""Writes the desk's texts as ES modules, one for each language and part. They need no library in the browser."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from tests.languages.messages import NONE, Choice, Message, Pattern, Unusable, Value, path_of

CORE: Final = "core/texts"
FORMS: Final = "core/text-forms"
"""The module with the functions for plurals and capitals, which is written by hand."""
BASES: Final = {
    "core/texts-lazy": CORE,
    "ui/texts": CORE,
    "admin/texts": "ui/texts",
    "insights/texts": "ui/texts",
}
"""Parts that contain the texts of another part, too."""

_IDENTIFIER: Final = re.compile(r"[A-Za-z_$][\w$]*|0|[1-9]\d*")
_CORE_HEAD: Final = """\
export const language = "{language}";
/** The user's own variety of the language, such as en-GB, for dates and numbers. */
export const locale = globalThis.navigator?.languages?.find((each) => each === language || each.startsWith(`${{language}}-`)) ?? language;
/** @param {{number}} n */
export const number = (n) => n.toLocaleString(locale);
"""

Node: TypeAlias = "dict[str, Node | Message]"


def module_of(
    part: str,
    language: str,
    name: str,
    messages: Mapping[str, Message],
    signatures: Mapping[str, Message],
    base: Mapping[str, Message],
) -> str:
    """Return the module of a part in a language.

    Args:
        part: its path without suffix, such as `core/texts`.
        language: its tag.
        name: its name in English.
        messages: the texts in their order.
        signatures: the English texts; their variables are the parameters.
        base: the English texts of the part that this one contains, if any.
    """
    tree = _tree(messages)
    body = _object(tree, signatures, _tree(base), ["base"], language == "en")
    here = part if language == "en" else f"languages/{language}/{part}"
    source = f"languages/{language}/{part}.ftl"
    shape = "" if language == "en" else f'/** @type {{typeof import("{_relative(here, part)}").t}} */\n'
    text = f"{shape}export const t = {body};\n"
    head = _imports(part, text, part in BASES) + (
        _CORE_HEAD.format(language=language) if part == CORE else ""
    )
    return f"// @ts-check\n/** Texts in {name}, written by `make languages` from {source}. */\n{head}{text}"


def _imports(part: str, text: str, has_base: bool) -> str:
    lines = []
    for source, names in ((CORE, ("number",)), (FORMS, ("lower", "plural"))):
        used = [each for each in names if re.search(rf"\b{each}\(", text)]
        if used and source != part:
            lines.append(f'import {{ {", ".join(used)} }} from "{_relative(part, source)}";')
    if has_base:
        lines.append(f'import {{ t as base }} from "{_relative(part, BASES[part])}";')
    return "".join(f"{each}\n" for each in lines)


def _relative(part: str, target: str) -> str:
    path = posixpath.relpath(f"{target}.js", posixpath.dirname(part))
    return path if path.startswith(".") else f"./{path}"


def _tree(messages: Mapping[str, Message]) -> Node:
    root: Node = {}
    for message in messages.values():
        *groups, last = path_of(message.id)
        node = root
        for each in groups:
            below = node.setdefault(each, {})
            if isinstance(below, Message):
                raise Unusable(f"{message.id}: {below.id} is a text, so it can't contain others.")
            node = below
        if last in node:
            raise Unusable(f"{message.id} is a text, so it can't contain others.")
        node[last] = message
    return root


def _object(node: Node, signatures: Mapping[str, Message], base: Node, path: list[str], typed: bool) -> str:
    lines = [f"...{'.'.join(path)},"] if base else []
    for key, value in node.items():
        below = base.get(key, {})
        if isinstance(value, Message):
            text = _text(value, signatures, typed)
        elif _is_list(value):
            text = _list([each for each in value.values() if isinstance(each, Message)], signatures, typed)
        else:
            deeper = below if isinstance(below, dict) else {}
            text = _object(value, signatures, deeper, [*path, key], typed)
        lines.append(f"{_property(key)}: {text},")
    return "{\n" + "\n".join(lines) + "\n}"


def _is_list(node: Node) -> bool:
    """True if the keys are 1, 2, 3 and so on."""
    return list(node) == [str(each + 1) for each in range(len(node))] and all(
        isinstance(each, Message) for each in node.values()
    )


def _property(key: str) -> str:
    return key if _IDENTIFIER.fullmatch(key) else json.dumps(key, ensure_ascii=False)


def _parameters(variables: Mapping[str, str], typed: bool) -> str:
    if not typed:
        return ", ".join(variables)
    return ", ".join(f"/** @type {{{kind}}} */ {name}" for name, kind in variables.items())


def _text(message: Message, signatures: Mapping[str, Message], typed: bool) -> str:
    variables = signatures[message.id].variables
    value = _expression(message.pattern, variables)
    if _is_one_of_literals(message.pattern):
        value = f"`${{{value}}}`"  # a string to the type checker, not one of the English texts
    return f"({_parameters(variables, typed)}) => {value}" if variables else value


def _is_one_of_literals(pattern: Pattern) -> bool:
    """True if a pattern is one of several texts without variables."""
    return (
        len(pattern) == 1
        and isinstance(pattern[0], Choice)
        and all(isinstance(part, str) for _, variant in pattern[0].variants for part in variant)
    )


def _list(items: list[Message], signatures: Mapping[str, Message], typed: bool) -> str:
    variables = {name: kind for each in items for name, kind in signatures[each.id].variables.items()}
    values = f"[{', '.join(_expression(each.pattern, variables) for each in items)}]"
    return f"({_parameters(variables, typed)}) => {values}" if variables else values


def _expression(pattern: Pattern, variables: Mapping[str, str]) -> str:
    if all(isinstance(each, str) for each in pattern):
        return json.dumps("".join(str(each) for each in pattern), ensure_ascii=False)
    if len(pattern) == 1 and not isinstance(pattern[0], str):
        return _part(pattern[0], variables)
    return (
        "`"
        + "".join(
            _escaped(each) if isinstance(each, str) else f"${{{_part(each, variables)}}}" for each in pattern
        )
        + "`"
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("`", "\\`").replace("${", "\\${")


def _part(part: str | Value | Choice, variables: Mapping[str, str]) -> str:
    if isinstance(part, str):
        return json.dumps(part, ensure_ascii=False)
    if isinstance(part, Value):
        if part.form == "LOWER":
            return f"lower({part.name})"
        return f"number({part.name})" if variables[part.name] == "number" else part.name
    written = [(key, _expression(each, variables)) for key, each in part.variants]
    if variables[part.name] == "number":
        return f"plural({part.name}, {{ {', '.join(f'{key}: {each}' for key, each in written)} }})"
    result = written[-1][1]
    for key, each in reversed(written[:-1]):
        result = f"{_test(part.name, key, variables)} ? {each} : {result}"
    return f"({result})"


def _test(name: str, key: str, variables: Mapping[str, str]) -> str:
    if key == NONE:
        return f"!{name}"
    if variables[name] == "boolean":
        return name if key == "true" else f"!{name}"
    return f"{name} === {json.dumps(key)}"
