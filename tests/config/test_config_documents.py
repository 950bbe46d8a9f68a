"""The example and the reference name every setting with its real default, and reading the configuration is light."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from verlwatch.config import Config, OwnLine, Run, load
from verlwatch.config._telling import Maintenance, Route
from verlwatch.config._yaml import read
from verlwatch.fields import Model, ReceiverConfig
from verlwatch.shell.notifiers import NOTIFIERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.example.yaml"
REFERENCE = ROOT / "docs" / "CONFIG.md"
SECTIONS = {
    name: field.annotation
    for name, field in Config.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Model)
}


def written_default(field: FieldInfo) -> str:
    """The default as the reference writes it."""
    if field.is_required():
        return "required"
    if field.default in {None, ""}:
        return "–"
    default = f"[{', '.join(field.default)}]" if isinstance(field.default, tuple) else field.default
    return f"`{default}`"


def rows() -> Iterator[str]:
    """The rows of the reference for all settings but those of receivers."""
    entries: dict[str, type[Model]] = {"runs": Run, "lines": OwnLine, "routes": Route, "maintenance": Maintenance}
    for name, field in Config.model_fields.items():
        if name in SECTIONS:
            keys = SECTIONS[name].by_key()
            yield from (f"| `{name}.{key}` | {written_default(of)} | {of.description} |" for key, of in keys.items())
        else:
            yield f"| `{name}` | {written_default(field)} | {field.description} |"
    for name, entry in entries.items():
        keys = entry.by_key()
        yield from (f"| `{name}[].{key}` | {written_default(of)} | {of.description} |" for key, of in keys.items())


def receiver_rows() -> Iterator[str]:
    """The rows of the reference for what each kind of receiver has of its own."""
    for notifier in NOTIFIERS:
        for key, field in notifier.Config.by_key().items():
            if key not in ReceiverConfig.by_key():
                kind = f"`receivers[].{key}` ({notifier.TYPE})"
                yield f"| {kind} | {written_default(field)} | {field.description} |"


def test_the_reference_holds_exactly_the_settings_there_are_with_their_defaults() -> None:
    table = re.findall(r"^\| `(?!receivers\[\])[a-z_]+(?:\[\])?[.a-z_]*`.*$", REFERENCE.read_text(), re.MULTILINE)
    assert sorted(table) == sorted(rows())


def test_the_reference_holds_exactly_the_settings_of_each_kind_of_receiver() -> None:
    table = re.findall(r"^\| `receivers\[\]\.[a-z_]+` \(.*$", REFERENCE.read_text(), re.MULTILINE)
    assert sorted(table) == sorted(receiver_rows())


def test_the_reference_holds_what_every_receiver_has() -> None:
    table = re.findall(r"^\| `receivers\[\]\.([a-z_]+)` \|(.*)$", REFERENCE.read_text(), re.MULTILINE)
    fields = {key: field for key, field in ReceiverConfig.by_key().items() if key not in {"name", "type"}}
    assert [row for row in table if row[0] in fields] == [
        (key, f" {written_default(field)} | {field.description} |") for key, field in fields.items()
    ]


def test_every_kind_of_receiver_is_named_in_the_reference() -> None:
    (row,) = re.findall(r"^\| `receivers\[\]\.type` .*$", REFERENCE.read_text(), re.MULTILINE)
    assert all(f"`{notifier.TYPE}`" in row for notifier in NOTIFIERS)


def test_every_setting_is_described() -> None:
    fields = [*Config.model_fields.values(), *Run.by_key().values(), *OwnLine.by_key().values()]
    fields += [field for section in SECTIONS.values() for field in section.by_key().values()]
    assert all(field.description for field in fields)


def test_the_example_loads_and_but_for_runs_and_receivers_is_the_default() -> None:
    config = load(EXAMPLE)
    assert config.model_copy(update={"runs": (), "receivers": ()}) == Config()
    assert {receiver.type for receiver in config.receivers} == {notifier.TYPE for notifier in NOTIFIERS}


def test_the_example_holds_every_setting_and_writes_each_default_as_it_is() -> None:
    written = read(EXAMPLE).value
    assert set(written) == set(Config.model_fields)
    for name, section in SECTIONS.items():
        assert written[name] == {key: as_text(field) for key, field in section.by_key().items()}
    assert set(written["runs"][0]) == set(Run.by_key())
    for notifier in NOTIFIERS:
        entries = [entry for entry in written["receivers"] if entry["type"] == notifier.TYPE]
        own = notifier.Config.by_key().keys() - ReceiverConfig.by_key()
        assert own <= {key for entry in entries for key in entry} <= set(notifier.Config.by_key())
    assert {key for entry in written["receivers"] for key in entry} >= set(ReceiverConfig.by_key())


def as_text(field: FieldInfo) -> Any:
    """The default as YAML gives it."""
    if field.default is None or isinstance(field.default, tuple):
        return None if field.default is None else list(field.default)
    return str(field.default)


@pytest.mark.parametrize("name", Config.model_fields)
def test_each_setting_of_the_example_has_a_comment(name: str) -> None:
    lines = EXAMPLE.read_text().splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(f"{name}:"))
    assert lines[start - 1].startswith("# ")
    end = next((index for index, line in enumerate(lines[start:], start) if not line), len(lines))
    bare = [line.strip() for line in lines[start + 1 : end] if "#" not in line]
    if name in SECTIONS:
        assert bare == []


def test_importing_the_configuration_needs_no_network_library() -> None:
    code = "import sys, verlwatch.config; print(sorted({'aiohttp', 'slack_sdk', 'asyncio'} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert answer.stdout == "[]\n"
