"""Imports point one way.  Read from the syntax trees, so that a forbidden import fails even where it is never run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "verlwatch"
MODULES = sorted(PACKAGE.rglob("*.py"))

LAYERS: tuple[tuple[str, frozenset[str]], ...] = (
    # prefix of a module, what it may import of verlwatch (prefixes); the first prefix that fits counts
    ("verlwatch.core._records", frozenset()),
    ("verlwatch.core.types", frozenset({"verlwatch.core._records"})),
    ("verlwatch.core.words", frozenset()),
    ("verlwatch.core.phases", frozenset({"verlwatch.core.types"})),
    ("verlwatch.core.tail", frozenset({"verlwatch.core.types", "verlwatch.core.phases"})),
    (
        "verlwatch.core.metrics",
        frozenset({"verlwatch.core.types", "verlwatch.core.phases", "verlwatch.core.tail"}),
    ),
    ("verlwatch.core.steps", frozenset({"verlwatch.core.types", "verlwatch.core.phases"})),
    *(
        (
            f"verlwatch.core.{sibling}",
            frozenset(
                {
                    "verlwatch.core.types",
                    "verlwatch.core.phases",
                    "verlwatch.core.metrics",
                    "verlwatch.core.words",
                    "verlwatch.core.tail",
                }
            ),
        )
        for sibling in ("lines", "series", "rules", "incidents")
    ),
    *(
        (
            f"verlwatch.core.{sibling}",
            frozenset(
                {
                    "verlwatch.core.types",
                    "verlwatch.core.phases",
                    "verlwatch.core.metrics",
                    "verlwatch.core.words",
                    "verlwatch.core.settings",
                    "verlwatch.core.rules",
                    "verlwatch.core.incidents",
                }
            ),
        )
        for sibling in ("life", "outlook", "cards")
    ),
    ("verlwatch.core", frozenset({"verlwatch.core"})),
    ("verlwatch.status", frozenset({"verlwatch.core.types"})),
    ("verlwatch.fields", frozenset()),
    (
        "verlwatch.config",
        frozenset(
            {
                "verlwatch.config",
                "verlwatch.fields",
                "verlwatch.core.types",
                "verlwatch.core.settings",
                "verlwatch.core.phases",
                "verlwatch.core.metrics",
                "verlwatch.shell",
            }
        ),
    ),
    ("verlwatch.replay", frozenset({"verlwatch.core"})),
    (
        "verlwatch.report",
        frozenset({"verlwatch.report", "verlwatch.replay", "verlwatch.core", "verlwatch.shell.printable"}),
    ),
    (
        "verlwatch.shell.observers",
        frozenset({"verlwatch.shell", "verlwatch.core", "verlwatch.status", "verlwatch.fields", "verlwatch.config"}),
    ),
    ("verlwatch.shell", frozenset({"verlwatch.shell", "verlwatch.core", "verlwatch.status", "verlwatch.fields"})),
    ("verlwatch.demo", frozenset()),
)
PURE = frozenset({
    "__future__", "array", "bisect", "collections", "contextlib", "dataclasses", "functools", "hashlib", "itertools",
    "json", "math", "operator", "re", "statistics", "typing", "_typeshed", "orjson", "verlwatch",
    "enum", "ast", "ahocorasick_rs", "fnmatch",
    "pathlib.PurePath",  # names a run after its file; it opens nothing
})  # fmt: skip
"""What the core may import: nothing that reads a clock, a file or chance.  Extend it by what computes alone."""
IMPURE_CALLS = {"open", "print", "input", "exec", "eval", "compile", "breakpoint", "__import__"}
AWAITED_BY_AIOHTTP = {"verlwatch.shell.notifiers._http._refuse_redirect", "verlwatch.shell.http.server.answer"}


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield node.module or ""
            if node.module and node.module.startswith("verlwatch"):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, prefixes: frozenset[str]) -> bool:
    return any(module == prefix or module.startswith(prefix + ".") for prefix in prefixes)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_point_one_way(path: Path) -> None:
    module = name_of(path)
    allowed = next((a for prefix, a in LAYERS if within(module, frozenset({prefix}))), None)
    if allowed is None:
        return  # app, cli, commands: the top, which may import everything below
    own = frozenset({next(prefix for prefix, _ in LAYERS if within(module, frozenset({prefix})))})
    for imported in imports(path):
        if not imported.startswith("verlwatch.") or imported == "verlwatch.__version__":
            continue
        parents = {f"{a}.{leaf}" for a in allowed | own for leaf in [imported.rsplit(".", 1)[-1]]}
        assert (
            within(imported, allowed | own) or imported in parents or imported in {"verlwatch.core", "verlwatch.shell"}
        ), f"{module} imports {imported}"


DOORS = ("verlwatch.core", "verlwatch.shell.gpu", "verlwatch.shell.observers")
"""Packages that are entered by their public modules alone, and so are the packages inside them."""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_nobody_reaches_past_the_door_of_a_package(path: Path) -> None:
    inside = [path.relative_to(PACKAGE.parent).with_suffix("").parts[:n] for n in range(1, 6)]
    for imported in imports(path):
        parts = tuple(imported.split("."))
        hidden = next((n for n, part in enumerate(parts) if part.startswith("_") and not part.endswith("__")), None)
        if hidden is not None and within(imported, frozenset(DOORS)):
            assert parts[:hidden] in inside, f"{name_of(path)} imports {imported}"


def impurities(source: str) -> list[str]:
    """Imports and calls in ``source`` that reach beyond its arguments."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                found += [alias.name for alias in names if not within(alias.name, PURE)]
            case ast.ImportFrom(module, names):
                full = [f"{module}.{alias.name}" for alias in names]
                found += [name for name in full if not within(name, PURE)]
            case ast.Name(name) if name in IMPURE_CALLS:
                found.append(name)
    return found


@pytest.mark.parametrize("path", [p for p in MODULES if within(name_of(p), frozenset({"verlwatch.core"}))], ids=name_of)
def test_the_core_is_pure(path: Path) -> None:
    assert impurities(path.read_text()) == []


@pytest.mark.parametrize(
    "source",
    [
        *("import time", "import datetime", "from pathlib import Path", "import os.path", "from random import gauss"),
        *("open('a')", "print(1)", "say = print", "from importlib import import_module", "import numpy"),
    ],
)
def test_what_is_not_pure_is_found(source: str) -> None:
    assert impurities(source)


def test_nothing_below_imports_the_top() -> None:
    top = frozenset({"verlwatch.app", "verlwatch.cli", "verlwatch.commands"})
    below = [path for path in MODULES if not within(name_of(path), top | {"verlwatch.__main__"})]
    assert [name_of(p) for p in below for i in imports(p) if within(i, top)] == []


def test_tasks_are_created_in_one_place() -> None:
    makers = {"create_task", "ensure_future", "TaskGroup"}
    found = {
        name_of(path)
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in makers
    }
    assert found <= {"verlwatch.app"}


def test_only_functions_that_wait_are_async() -> None:
    waits = (ast.Await, ast.AsyncFor, ast.AsyncWith)
    idle = [
        f"{name_of(path)}.{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.AsyncFunctionDef)
        and not any(isinstance(inner, waits) for inner in ast.walk(node))
        and not isinstance(node.body[-1], ast.Expr)  # the `...` of a protocol
        and f"{name_of(path)}.{node.name}" not in AWAITED_BY_AIOHTTP
    ]
    assert idle == []
