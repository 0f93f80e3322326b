"""The desk's import graph: folders are layers, and there are no circles, also not by way of lazy imports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.support.root import ROOT

FOLDER: Final = ROOT / "http/deskwire/http/pages/desk"
LAYERS: Final = (("vendor",), ("core",), ("ui",), ("inbox", "insights", "admin", "developers"), ("shell",))
"""The layers from the lowest to the highest. Modules at the root of the desk belong to the shell."""

_COMMENT: Final = re.compile(r"/\*[\s\S]*?\*/|^\s*//.*$", re.MULTILINE)
_IMPORT: Final = re.compile(r"""(?:\bfrom\s*|\bimport\s*\(?\s*|\bnew URL\(\s*)"(\.{1,2}/[^"]+\.js)\"""")

_LAZY: Final = re.compile(r"""lazy\(\(\) => import\("([^"]+)"\), "(\w+)"\)""")

Graph = Mapping[str, frozenset[str]]


def graph_of(folder: Path) -> Graph:
    """Return the modules that each module imports, statically, lazily or as a worker, by their paths in the folder."""
    modules = (each for each in sorted(folder.rglob("*.js")) if not {"vendor", "languages"} & set(each.parts))
    return {each.relative_to(folder).as_posix(): frozenset(_imports(folder, each)) for each in modules}


def _imports(folder: Path, module: Path) -> Iterator[str]:
    for target in _IMPORT.findall(_COMMENT.sub("", module.read_text())):
        yield (module.parent / target).resolve().relative_to(folder.resolve()).as_posix()


def layer_of(module: str) -> tuple[int, str]:
    """Return the height and the name of a module's folder."""
    name = module.split("/")[0] if "/" in module else "shell"
    return next(height for height, names in enumerate(LAYERS) if name in names), name


def upward_imports(graph: Graph) -> list[str]:
    """Return the imports that lead to a higher layer, or to another folder of the same layer."""
    found = []
    for module, targets in graph.items():
        height, name = layer_of(module)
        for target in sorted(targets):
            above, other = layer_of(target)
            if above > height or (above == height and other != name):
                found.append(f"{module} imports {target}")
    return found


def circles(graph: Graph) -> list[list[str]]:
    """Return the groups of modules that import each other, by way of others too (Tarjan, 1972)."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        order[module] = lowest[module] = len(order)
        path.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in order:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in path:
                lowest[module] = min(lowest[module], order[target])
        if lowest[module] == order[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1 or module in graph.get(module, ()):
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found


def planted(folder: Path, **sources: str) -> Graph:
    """Return the graph of a desk with these modules; `__` in a name stands for a slash."""
    for name, source in sources.items():
        file = folder / f"{name.replace('__', '/')}.js"
        file.parent.mkdir(exist_ok=True)
        file.write_text(source)
    return graph_of(folder)


def test_desk_has_every_layer() -> None:
    modules = graph_of(FOLDER)
    assert {layer_of(module)[1] for module in modules} == {name for names in LAYERS[1:] for name in names}
    assert "core/feed-worker.js" in modules["core/feed.js"]
    assert "admin/tickets.js" in modules["pages.js"]


def test_no_module_imports_from_a_higher_layer() -> None:
    assert upward_imports(graph_of(FOLDER)) == []


def test_no_modules_import_each_other() -> None:
    assert circles(graph_of(FOLDER)) == []


@pytest.mark.parametrize(
    "source",
    [
        'import { theme } from "../app.js";',
        'const Palette = lazy(() => import("../shell/palette.js"), "Palette");',
        'import "../inbox/list.js";',
        'export { t } from "../admin/texts.js";',
    ],
)
def test_import_of_a_higher_layer_is_found(tmp_path: Path, source: str) -> None:
    assert len(upward_imports(planted(tmp_path, ui__frame=source))) == 1


def test_import_of_a_sibling_folder_is_found(tmp_path: Path) -> None:
    graph = planted(tmp_path, admin__ticket='import { times } from "../inbox/actions.js";')
    assert upward_imports(graph) == ["admin/ticket.js imports inbox/actions.js"]


def test_import_in_a_comment_is_ignored(tmp_path: Path) -> None:
    source = (
        '/** @import { View } from "../inbox/list.js" */\n// import "../app.js"\nimport "../core/api.js";'
    )
    assert upward_imports(planted(tmp_path, ui__link=source)) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ('import { b } from "./b.js";', 'import { a } from "./a.js";'),
        ('import { b } from "./b.js";', 'const A = lazy(() => import("./a.js"), "A");'),
        ('const b = new URL("./b.js", import.meta.url);', 'import { a } from "./a.js";'),
    ],
)
def test_circle_is_found(tmp_path: Path, first: str, second: str) -> None:
    graph = planted(tmp_path, inbox__a=first, inbox__b=second, inbox__c='import "./a.js";')
    assert circles(graph) == [["inbox/a.js", "inbox/b.js"]]


def test_lazy_components_exist() -> None:
    found = 0
    for module in FOLDER.rglob("*.js"):
        for target, name in _LAZY.findall(module.read_text()):
            source = (module.parent / target).read_text()
            assert re.search(rf"export (?:const|function|class) {name}\b", source), (module.name, name)
            found += 1
    assert found > 10
