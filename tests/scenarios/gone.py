"""Runs whose process is gone, as an observer on the host sees it; no line of the log tells."""

from __future__ import annotations

from tests.scenarios.dying import running
from tests.scenarios.scene import Scene


def _gone(exit_: str, **more: str | float) -> Scene:
    scene = running()
    return scene.observe("process", pid=21044, state="gone", name="ray::TaskRunner", exit=exit_, **more).end(3600)


def process_signal_9() -> Scene:
    """The trainer's process is killed, and no line tells of it."""
    return _gone("signal 9", lasted_s=780.5)


def process_oom_killed() -> Scene:
    """The same, and the kernel has counted a kill for want of memory."""
    return _gone("signal 9", lasted_s=780.5, oom_kills=1)


def process_code_1() -> Scene:
    """It ends with code 1."""
    return _gone("code 1")


def process_disappeared() -> Scene:
    """It is gone; only its parent is told how."""
    return _gone("")


SCENES = (process_signal_9, process_oom_killed, process_code_1, process_disappeared)
