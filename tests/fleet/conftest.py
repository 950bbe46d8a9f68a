"""Fixtures of the tests with hosts of their own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.daemon.conftest import Starter
from tests.fleet.fleet import FILES, HUB
from tests.fleet.network import Network, NotPermittedError


@pytest.fixture
def network() -> Iterator[Network]:
    """A hub's host and eight agents'."""
    try:
        network = Network([HUB, *FILES])
    except NotPermittedError as error:
        pytest.skip(f"network namespaces cannot be made here: {error}")
    with network:
        yield network


@pytest.fixture
async def start() -> AsyncIterator[Starter]:
    starter = Starter()
    yield starter
    await starter.end()
