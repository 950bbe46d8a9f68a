"""A GPU host wants a small, quiet install."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIMIT_MB = 45
UNWANTED = {"uvloop", "pandas", "numpy", "typer", "matplotlib"}


def plain(requirement: str) -> str:
    return re.split(r"[\s<>=!~;\[]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def closure(names: list[str]) -> set[str]:
    """The distributions that an install of ``names`` brings, extras left out."""
    found: set[str] = set()
    queue = [plain(name) for name in names]
    while queue:
        name = queue.pop()
        if name in found:
            continue
        found.add(name)
        for requirement in distribution(name).requires or []:
            marker = requirement.partition(";")[2]
            if "extra" in marker or _only_elsewhere(marker):
                continue
            queue.append(plain(requirement))
    return found


def _only_elsewhere(marker: str) -> bool:
    older = re.search(r'python_version < "3\.(\d+)"', marker)
    return bool("win32" in marker or "Windows" in marker or (older and sys.version_info >= (3, int(older[1]))))


def size_mb(name: str) -> float:
    """Megabytes of a distribution's files without bytecode."""
    files = distribution(name).files or []
    paths = [Path(str(file.locate())) for file in files if not str(file).endswith(".pyc")]
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6


def base() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["dependencies"])


def test_the_base_install_stays_small() -> None:
    sizes = {name: size_mb(name) for name in closure(base())}
    own = sum(path.stat().st_size for path in (ROOT / "verlwatch").rglob("*") if path.suffix != ".pyc") / 1e6
    assert sum(sizes.values()) + own <= LIMIT_MB, sorted(sizes.items(), key=lambda item: -item[1])


def test_the_base_install_brings_nothing_heavy() -> None:
    assert closure(base()) & UNWANTED == set()


def test_every_dependency_has_its_reason_written_down() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = {plain(r) for r in base() + [r for extra in project["optional-dependencies"].values() for r in extra]}
    reasons = (ROOT / "docs" / "DEPENDENCIES.md").read_text()
    assert {name for name in named if f"`{name}`" not in reasons} == set()


def test_the_package_imports_only_what_it_declares() -> None:
    declared = {"pyyaml": "yaml"}
    known = {declared.get(plain(name), plain(name).replace("-", "_")) for name in base()} | {"verlwatch"}
    imported = {
        (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")[0]
        for path in (ROOT / "verlwatch").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    typing_only = {"_typeshed"}
    with_pydantic = {"pydantic_core"}
    assert imported - known - typing_only - with_pydantic - set(sys.stdlib_module_names) == set()
