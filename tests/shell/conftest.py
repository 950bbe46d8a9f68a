"""What the tests of the shell share."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_proxy_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake receivers listen on loopback: a proxy in the environment of whoever runs the tests is not for them."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
