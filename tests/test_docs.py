"""Documents say what is so: generated parts are up to date, links lead somewhere, commands and files exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from verlwatch.cli import COMMANDS, build_parser
from verlwatch.core.lines import KINDS
from verlwatch.core.rules import LIFE_RULES, MEMORY_RULES, RULES, LifeRule, MemoryRule, Rule
from verlwatch.core.series import DETECTORS
from verlwatch.shell.gpu import SOURCES
from verlwatch.shell.notifiers import NOTIFIERS
from verlwatch.shell.observers import OBSERVERS

ALL_RULES: tuple[Rule | LifeRule | MemoryRule, ...] = (*RULES, *LIFE_RULES, *MEMORY_RULES)
ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/**/*.md")])


def test_the_readme_shows_the_message_and_the_rules_of_today() -> None:
    done = subprocess.run([sys.executable, "docs/generate.py", "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "README.md is out of date; run: python docs/generate.py"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_in_documents_exist(document: Path) -> None:
    known = {name.replace("_", "-") for name in COMMANDS}
    used = set(re.findall(r"^(?:\s{4}|\$ |ExecStart=\S*)verlwatch ([a-z-]+)", document.read_text(), flags=re.MULTILINE))
    assert used - known == set()
    for target in re.findall(r"^\s{4}make ([a-z]+)", document.read_text(), flags=re.MULTILINE):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_name_nothing_outside_the_repository(document: Path) -> None:
    for path in re.findall(r"(?<![\w./])\.\./[\w./-]+", document.read_text()):
        place = (document.parent / path).resolve()
        assert place.is_relative_to(ROOT), path
        assert place.exists(), path


def test_names_stand_where_contributing_says() -> None:
    places = re.findall(r"`(\w+)`\s\(`([\w/]+\.py)`\)", (ROOT / "CONTRIBUTING.md").read_text())
    assert {"KINDS", "DETECTORS", "OBSERVERS", "SOURCES"} <= {name for name, _ in places}
    for name, path in places:
        text = (ROOT / "verlwatch" / path).read_text()
        assert re.search(rf"^(?:class )?{name}\b.*[=:]", text, flags=re.MULTILINE), f"{name} is not in {path}"


def test_flags_in_the_readme_exist(capsys: pytest.CaptureFixture[str]) -> None:
    text = ""
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            build_parser().parse_args([name.replace("_", "-"), "--help"])
        text += capsys.readouterr().out
    for flag in re.findall(r"verlwatch [a-z-]+[^\n]*?(--[a-z-]+)", (ROOT / "README.md").read_text()):
        assert flag in text


def test_files_named_in_the_architecture_exist() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    for cell in re.findall(r"^\| (`.*?) \|", text, flags=re.MULTILINE):
        paths = re.findall(r"`([\w/]+(?:\.py|/))`", cell)
        folder = Path(paths[0]).parent if paths else Path()
        for path in paths:
            found = [ROOT / "verlwatch" / path, ROOT / "verlwatch" / folder / path]
            assert any(candidate.exists() for candidate in found), path


def test_the_architecture_stays_short() -> None:
    assert len((ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines()) <= 200


def test_the_lists_are_what_their_folders_hold() -> None:
    def public(folder: str) -> set[str]:
        return {path.stem for path in (ROOT / "verlwatch" / folder).glob("[!_]*.py")}

    assert public("core/lines") == {kind.NAME for kind in KINDS}
    assert public("core/rules") == {rule.NAME for rule in ALL_RULES}
    assert public("core/series") == {detector.__name__.lower() for detector in DETECTORS}
    assert public("shell/notifiers") == {notifier.TYPE for notifier in NOTIFIERS}
    assert {source.__module__.rpartition(".")[2] for source in SOURCES} == public("shell/gpu") - {"prometheus"}
    assert len(OBSERVERS) == len(public("shell/observers"))


def test_every_detector_rule_and_notifier_explains_itself() -> None:
    for rule in ALL_RULES:
        assert rule.__doc__
        assert rule.NEEDS
    for described in (*DETECTORS, *NOTIFIERS):
        assert described.__doc__


def test_files_and_functions_stay_small_enough_to_hold_in_the_head() -> None:
    long = {
        str(path.relative_to(ROOT)): count
        for path in (ROOT / "verlwatch").rglob("*.py")
        if (count := len(path.read_text().splitlines())) > 350
    }
    assert long == {}
