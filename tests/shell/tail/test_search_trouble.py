"""What cannot be looked at, and inotify that is used up, stop nobody."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from verlwatch.shell import wake
from verlwatch.shell._discover import discover


def test_a_match_that_may_not_be_looked_at_is_a_source_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hidden, seen = tmp_path / "a.log", tmp_path / "b.log"
    hidden.touch()
    seen.touch()
    look = os.stat

    def refuse(path: Any, *args: Any, **kwargs: Any) -> os.stat_result:
        if str(path) == str(hidden):
            raise PermissionError(errno.EACCES, "Permission denied")
        return look(path, *args, **kwargs)

    monkeypatch.setattr(os, "stat", refuse)
    assert set(discover({"r": (str(tmp_path / "*.log"),)}, (), 10).runs) == {str(hidden), str(seen)}


def test_without_an_inotify_instance_the_search_goes_on_by_polling(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left() -> None:
        raise OSError(errno.EMFILE, "inotify instance limit reached")

    with monkeypatch.context() as used_up:
        used_up.setattr(wake, "Observer", none_left)
        watching = wake.Wake(lambda: None)
        watching.watch([str(tmp_path)])
        assert "max_user_instances" in watching.problem
    watching.watch([str(tmp_path)])
    assert watching.problem == ""
    watching.stop()
