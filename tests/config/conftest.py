"""A folder with a configuration in it, and what is wrong with that configuration as lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from verlwatch.config import Config, ConfigError, load

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Loads = Callable[[str | bytes], Config]
    Complains = Callable[[str | bytes], list[str]]


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    return tmp_path / "verlwatch.yaml"


@pytest.fixture
def loads(config_file: Path) -> Loads:
    """Writes a configuration and reads it."""

    def write_and_load(text: str | bytes) -> Config:
        config_file.write_bytes(text.encode() if isinstance(text, str) else text)
        return load(config_file)

    return write_and_load


@pytest.fixture
def complains(config_file: Path, loads: Loads) -> Complains:
    """Writes a configuration that must not load; gives what is wrong with it as ``line:column: path: text``."""

    def write_and_complain(text: str | bytes) -> list[str]:
        with pytest.raises(ConfigError) as caught:
            loads(text)
        lines = str(caught.value).splitlines()
        assert lines == [str(problem) for problem in caught.value.problems]
        assert all(line.startswith(f"{config_file}:") for line in lines)
        return [line.removeprefix(f"{config_file}:") for line in lines]

    return write_and_complain
