"""Calls every recorded operation with the generated client: `python every_operation.py URL TOKEN CASSETTE`.

Prints JSON: for each call and each event its error, or the answer in the client's own JSON.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

import deskwire_client as package
from deskwire_client import api as apis


def plain(name: str) -> str:
    """Return a name without case and marks, as the generator changes both."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def methods(client: Any) -> dict[str, Callable[..., Any]]:
    """Return the methods of all classes of calls, by operation id without case and marks."""
    found: dict[str, Callable[..., Any]] = {}
    kinds: list[tuple[str, Any]] = inspect.getmembers(apis, inspect.isclass)
    for name, kind in kinds:
        if name.endswith("Api"):
            instance = kind(client)
            found |= {plain(each): getattr(instance, each) for each in dir(instance) if each[0] != "_"}
    return found


def arguments(method: Callable[..., Any], exchange: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call; the body is made of its JSON."""
    named = {plain(each).removeprefix("var"): each for each in inspect.signature(method).parameters}
    given = {named[plain(each["name"])]: each["value"] for each in exchange["parameters"]}
    if exchange["has_body"]:
        given["body"] = built(getattr(package, exchange["request_model"]), exchange["body"])
    return given


def built(kind: Any, value: Any) -> Any:
    """Return a value of an annotated type, made by the constructors of its models as the guide does.

    `from_dict` would set absent fields to None, which is sent as null.
    """
    if value is None:
        return value
    options = [each for each in get_args(kind) if each is not type(None)]
    if isinstance(value, list) and options:
        return [built(options[0], each) for each in value]
    if isinstance(value, dict) and get_origin(kind) is dict:
        return {name: built(options[1], each) for name, each in value.items()}
    if options:
        return built(options[0], value)
    if not isinstance(value, dict) or not hasattr(kind, "model_fields"):
        return value
    if "actual_instance" in kind.model_fields:
        return kind.from_dict(value)
    names = {field.alias or name: (name, field) for name, field in kind.model_fields.items()}
    given = {names[name][0]: built(names[name][1].annotation, each) for name, each in value.items()}
    return kind(**given)


def survived(value: Any) -> Any:
    """Return a model's JSON after it was written, read and written again."""
    if not hasattr(value, "to_json"):
        return value
    again = type(value).from_json(value.to_json())
    assert again == value, "it differs after its own JSON"
    return json.loads(again.to_json())


def outcome(act: Callable[[], Any]) -> dict[str, Any]:
    """Return the answer of a call or its error."""
    try:
        return {"answer": survived(act())}
    except Exception as error:  # noqa: BLE001  # the test prints what any of 230 calls raises
        return {"error": f"{type(error).__name__}: {error}"}


def called(method: Callable[..., Any], exchange: dict[str, Any]) -> Any:
    """Return the answer to a call."""
    return method(**arguments(method, exchange))


def main(url: str, token: str, cassette: str) -> None:
    """Make all calls, and read all events."""
    tour = json.loads(Path(cassette).read_text())
    configuration = package.Configuration(host=url, access_token=token)
    found = {}
    with package.ApiClient(configuration) as client:
        known = methods(client)
        for each in tour["exchanges"]:
            found[each["name"]] = outcome(partial(called, known[plain(each["operation"])], each))
    for each in tour["events"]:
        model = getattr(package, each["model"])
        found[each["name"]] = outcome(partial(model.from_dict, each["body"]))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
