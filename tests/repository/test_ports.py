"""Every store has the methods of the engine's ports, with their parameters: the type checker does not compare them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Generic, Protocol

import pytest

from deskwire.engine.ports import Reader, SharedReader, Transaction
from deskwire.storage.postgres.commit.batch_transaction import BufferedTransaction
from deskwire.storage.postgres.transaction import PostgresReader, PostgresTransaction
from deskwire.storage.sqlite.transaction import SqliteReader, SqliteTransaction

IMPLEMENTATIONS = [
    (Reader, SqliteReader),
    (SharedReader, PostgresReader),
    (Transaction, SqliteTransaction),
    (Transaction, PostgresTransaction),
    (Transaction, BufferedTransaction),
]


def differences(port: type, implementation: type) -> Iterator[str]:
    """Yield each public method of a port that the implementation has not, or has with other parameters."""
    declared = [vars(each).items() for each in port.__mro__ if each not in (Protocol, Generic, object)]
    for name, method in (each for methods in declared for each in methods):
        if inspect.isfunction(method) and not name.startswith("_"):
            found = getattr(implementation, name, None)
            if found is None:
                yield f"{name} is missing"
            elif (theirs := _parameters(found)) != _parameters(method):
                yield f"{name}({', '.join(map(str, theirs))})"


def _parameters(method: object) -> list[tuple[str, bool]]:
    """Return the name of each parameter, and whether callers must give it."""
    assert callable(method)
    parameters = inspect.signature(method).parameters.values()
    return [(each.name, each.default is each.empty) for each in parameters]


@pytest.mark.parametrize(("port", "implementation"), IMPLEMENTATIONS)
def test_a_store_has_the_methods_of_its_port(port: type, implementation: type) -> None:
    assert not [*differences(port, implementation)]


def test_a_missing_method_and_another_parameter_are_found() -> None:
    class Port(Protocol):
        def kept(self, row: int) -> None: ...
        def renamed(self, row: int) -> None: ...
        def gone(self) -> None: ...

    class Store:
        def kept(self, row: int) -> None: ...
        def renamed(self, rowid: int) -> None: ...

    assert [each.partition("(")[0] for each in differences(Port, Store)] == ["renamed", "gone is missing"]
