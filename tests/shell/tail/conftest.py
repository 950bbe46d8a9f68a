"""Drivers that are closed after their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.shell.tail.driver import Driver


@pytest.fixture
def drive() -> Iterator[Callable[..., Driver]]:
    """Makes drivers of patterns."""
    drivers: list[Driver] = []

    def make(*patterns: Any, **options: Any) -> Driver:
        drivers.append(Driver(*patterns, **options))
        return drivers[-1]

    yield make
    for driver in drivers:
        driver.kill()
