"""Validation of the control flow: targets exist, every action is reachable, and every path ends or waits.

The checks accept arbitrary JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from msgspec import Struct

from deskwire.engine.definitions.checks import Errors, escaped, listed, wrong_type
from deskwire.engine.workflows.definition import ACTION_TYPES, END, AnswerOperand, operand_of
from deskwire.engine.workflows.validation.rules import broken
from deskwire.engine.workflows.validation.shape import ACTIONS_MAX, CASES_MAX, FLOWS_MAX, OPTIONS_MAX

_END: Final = -1
"""The node number of the end of the workflow."""

_PAUSES: Final = frozenset({"buttons", "form", "wait"})
_ENDS: Final = ("close", "hand_off")


class _Leap(Struct, frozen=True):
    """A `goto`, case or default, and its JSON pointer."""

    target: Any
    path: str


class _Node(Struct, frozen=True):
    """An action as a node of the control flow graph; `following` is the number of the next one in its flow."""

    path: str
    flow: int
    value: Mapping[str, Any]
    following: int

    @property
    def kind(self) -> str:
        kind = self.value.get("type")
        return kind if isinstance(kind, str) else ""


def flow_errors(value: Mapping[str, Any]) -> Errors:
    """Yield errors of the control flow, even if the definition has other errors."""
    flows = listed(value.get("flows"), FLOWS_MAX)
    nodes, entries = list(_nodes(flows)), _entries(flows)
    if len(nodes) > ACTIONS_MAX:
        return
    sound = len(entries) == len(flows) and all(node.kind in ACTION_TYPES for node in nodes)
    edges: list[frozenset[int]] = []
    for node in nodes:
        leaps = list(_leaps(node))
        targets = [_target(leap, entries) for leap in leaps]
        yield from _unknown(leaps, targets)
        sound = sound and None not in targets and (node.kind != "branch" or "default" in node.value)
        onwards = (node.following,) if _goes_on(node) or not leaps else ()
        edges.append(frozenset((*(target for target in targets if target is not None), *onwards)))
        yield from _operand(node, nodes)
    loops = list(_loops(nodes, edges))
    yield from loops
    if sound and nodes:
        yield from _unreached(flows, nodes, edges)
        if not loops:
            yield from _endless(nodes, edges)


def _nodes(flows: Sequence[Any]) -> Iterator[_Node]:
    number = 0
    for index, flow in enumerate(flows):
        actions = _actions(flow)
        for position, action in enumerate(actions):
            number += 1
            value = action if isinstance(action, Mapping) else {}
            last = position + 1 == len(actions) or value.get("type") in _ENDS
            yield _Node(f"/flows/{index}/actions/{position}", index, value, _END if last else number)


def _actions(flow: Any) -> Sequence[Any]:
    return listed(flow.get("actions"), ACTIONS_MAX) if isinstance(flow, Mapping) else ()


def _entries(flows: Sequence[Any]) -> dict[str, int]:
    """Return the number of the first action of each flow, by the flow's id."""
    entries: dict[str, int] = {}
    number = 0
    for flow in flows:
        actions = _actions(flow)
        if actions and isinstance(flow.get("id"), str):
            entries.setdefault(flow["id"], number)
        number += len(actions)
    return entries


def _leaps(node: _Node) -> Iterator[_Leap]:
    """Yield the targets of an action in other flows."""
    if node.kind == "buttons":
        for index, option in enumerate(listed(node.value.get("options"), OPTIONS_MAX)):
            if isinstance(option, Mapping) and "goto" in option:
                yield _Leap(option["goto"], f"{node.path}/options/{index}/goto")
    if node.kind == "branch":
        cases = node.value.get("cases")
        if isinstance(cases, Mapping):
            for case, target in islice(cases.items(), CASES_MAX):
                yield _Leap(target, f"{node.path}/cases/{escaped(case)}")
        if "default" in node.value:
            yield _Leap(node.value["default"], f"{node.path}/default")


def _target(leap: _Leap, entries: Mapping[str, int]) -> int | None:
    if leap.target == END:
        return _END
    return entries.get(leap.target) if isinstance(leap.target, str) else None


def _unknown(leaps: Sequence[_Leap], targets: Sequence[int | None]) -> Errors:
    for leap, target in zip(leaps, targets, strict=True):
        if not isinstance(leap.target, str):
            yield wrong_type(leap.path, "a string")
        elif target is None:
            yield broken("unknown_flow", leap.path, "There is no flow with this id that has actions.")


def _goes_on(node: _Node) -> bool:
    """Return whether the action can continue with the next one in its flow."""
    if node.kind != "buttons":
        return node.kind != "branch"
    options = listed(node.value.get("options"), OPTIONS_MAX)
    return node.value.get("allowText") is True or any(
        isinstance(option, Mapping) and "goto" not in option for option in options
    )


def _operand(node: _Node, nodes: Sequence[_Node]) -> Errors:
    """Yield errors of a branch's operand and cases."""
    on = node.value.get("on")
    if node.kind != "branch" or (on is None and "on" not in node.value):
        return
    operand = operand_of(on) if isinstance(on, str) else None
    if operand is None:
        yield broken("bad_operand", f"{node.path}/on")
    elif isinstance(operand, AnswerOperand):
        source = next((other.value for other in nodes if other.value.get("id") == operand.action), None)
        if source is None or not _answers(source, operand):
            yield broken("unknown_answer", f"{node.path}/on")
        elif source["type"] == "buttons" and source.get("allowText") is not True:
            yield from _impossible(node, source)


def _answers(source: Mapping[str, Any], operand: AnswerOperand) -> bool:
    """Return whether the action produces the answer: buttons one answer, a form one for each field."""
    if source.get("type") == "buttons":
        return operand.field is None
    return source.get("type") == "form" and operand.field in _ids(source.get("fields"))


def _impossible(node: _Node, source: Mapping[str, Any]) -> Errors:
    options, cases = _ids(source.get("options")), node.value.get("cases")
    for case in islice(cases, CASES_MAX) if isinstance(cases, Mapping) else ():
        if case not in options:
            yield broken("impossible_case", f"{node.path}/cases/{escaped(case)}")


def _ids(values: Any) -> set[Any]:
    each_id = (each.get("id") for each in listed(values, OPTIONS_MAX) if isinstance(each, Mapping))
    return {each for each in each_id if isinstance(each, str)}


def _reached(starts: Iterable[int], edges: Sequence[Iterable[int]]) -> set[int]:
    """Return the nodes reachable from `starts`, including `starts`."""
    seen = set(starts)
    todo = list(seen)
    while todo:
        here = todo.pop()
        fresh = set(edges[here]) - seen if here != _END else set()
        seen |= fresh
        todo += fresh
    return seen


def _loops(nodes: Sequence[_Node], edges: Sequence[frozenset[int]]) -> Errors:
    """Yield errors for branches that lead back to themselves without a waiting action; other actions can't."""
    busy = [
        successors if node.kind not in _PAUSES else frozenset()
        for node, successors in zip(nodes, edges, strict=True)
    ]
    for number, node in enumerate(nodes):
        if node.kind == "branch" and number in _reached(busy[number], busy):
            yield broken("endless_loop", node.path)


def _unreached(flows: Sequence[Any], nodes: Sequence[_Node], edges: Sequence[frozenset[int]]) -> Errors:
    """Yield errors for unreachable flows, and for the first unreachable action of each other flow."""
    reached = _reached({0}, edges)
    for index in range(len(flows)):
        own = [number for number, node in enumerate(nodes) if node.flow == index]
        missed = [number for number in own if number not in reached]
        if missed == own:
            yield broken("unreachable_flow", f"/flows/{index}")
        elif missed:
            yield broken("unreachable_action", nodes[missed[0]].path)


def _endless(nodes: Sequence[_Node], edges: Sequence[frozenset[int]]) -> Errors:
    """Yield an error for the first action of each flow from which no end can be reached."""
    back: list[set[int]] = [set() for _ in range(len(nodes) + 1)]  # the last is END's: -1
    for number, successors in enumerate(edges):
        for target in successors:
            back[target].add(number)
    ending = {_END}
    todo = [_END]
    while todo:
        fresh = back[todo.pop()] - ending
        ending |= fresh
        todo += fresh
    reported: set[int] = set()
    for number in sorted(_reached({0}, edges) - ending):
        if nodes[number].flow not in reported:
            reported.add(nodes[number].flow)
            yield broken("endless", nodes[number].path)
