"""verlwatch.shell.logs: one line an event, no secrets, nothing that steers a terminal."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from verlwatch.fields import Secret
from verlwatch.shell import logs

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = "https://hooks.slack.com/services/T0/B0/canary-1a2b3c4d?x=y"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Logging is global: every test leaves it as it was."""
    root = logging.getLogger()
    before = (root.handlers, root.level, sys.excepthook)
    yield
    root.handlers, level, sys.excepthook = before
    root.setLevel(level)
    structlog.reset_defaults()


def configured(level: str = "info", log_format: logs.LogFormat = "json", *secrets: str) -> io.StringIO:
    out = io.StringIO()
    logs.configure(level, log_format, [Secret(text) for text in secrets], out)
    return out


def raised(error: Exception) -> Exception:
    """The error with a traceback, as one that was caught has it."""
    try:
        raise error
    except type(error) as caught:
        return caught


def events(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


class Terminal(io.StringIO):
    """A stream that says it is one."""

    def isatty(self) -> bool:
        return True


def test_an_event_is_one_json_object_a_line_with_its_time_and_offset() -> None:
    out = configured()
    structlog.get_logger().info("reading", source="/var/log/train.log", position=17, lag_s=0.25, live=True, run=None)
    (event,) = events(out)
    at = datetime.fromisoformat(event.pop("timestamp"))
    assert at.utcoffset() is not None
    assert event == {
        "event": "reading",
        "level": "info",
        "source": "/var/log/train.log",
        "position": 17,
        "lag_s": 0.25,
        "live": True,
        "run": None,
    }


def test_a_terminal_gets_text_and_a_pipe_json() -> None:
    out = configured(log_format="auto")
    structlog.get_logger().info("reading")
    assert out.getvalue().startswith("{")
    terminal = Terminal()
    logs.configure("info", "auto", (), terminal)
    structlog.get_logger().info("reading")
    assert "reading" in terminal.getvalue()
    assert not terminal.getvalue().startswith("{")


def test_text_has_no_colours_where_none_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    terminal = Terminal()
    logs.configure("info", "text", (), terminal)
    structlog.get_logger().warning("reading")
    assert "\x1b" not in terminal.getvalue()


def test_events_below_the_level_are_not_written() -> None:
    out = configured("warning")
    structlog.get_logger().info("quiet")
    structlog.get_logger().warning("loud")
    assert [event["event"] for event in events(out)] == ["loud"]


def test_configuring_again_changes_the_level_of_loggers_that_exist() -> None:
    log = structlog.get_logger()
    configured("error")
    log.info("before")
    out = configured("debug")
    log.debug("after")
    assert [event["event"] for event in events(out)] == ["after"]


@pytest.mark.parametrize("log_format", ["json", "text"])
@pytest.mark.parametrize(
    "leak",
    [
        URL,
        "/services/T0/B0/canary-1a2b3c4d?x=y",
        "canary-1a2b3c4d",
        "https%3A%2F%2Fhooks.slack.com%2Fservices%2FT0%2FB0%2Fcanary-1a2b3c4d%3Fx%3Dy",
    ],
)
def test_a_secret_is_in_no_line_whatever_carries_it(log_format: logs.LogFormat, leak: str) -> None:
    out = configured("debug", log_format, URL, "")
    log = structlog.get_logger()
    log.debug("posting to %s", leak)
    log.info("nested", reply={"urls": [leak, {leak: (leak,)}]}, error=ValueError(leak), data=leak.encode())
    logging.getLogger("some.library").warning("POST %s failed", leak)
    log.error("failed", exc_info=raised(RuntimeError(leak)))
    assert out.getvalue().count("[secret]") >= 7
    assert "canary" not in out.getvalue()


def test_a_secret_with_quotes_and_backslashes_is_found_as_repr_writes_it() -> None:
    out = configured("info", "json", "can'ary\\\"x")
    structlog.get_logger().info("failed", error=repr("can'ary\\\"x"), plain="can'ary\\\"x")
    assert "ary" not in out.getvalue()


def test_libraries_speak_from_warning_on() -> None:
    out = configured("debug")
    library = logging.getLogger("some.library")
    library.debug("POST https://…")
    library.info("connected")
    library.warning("slow: %d s", 3)
    library.log(35, "a level of its own")
    assert [(event["event"], event["level"], event["logger"]) for event in events(out)] == [
        ("slow: 3 s", "warning", "some.library"),
        ("a level of its own", "warning", "some.library"),
    ]


def test_a_library_whose_arguments_do_not_fit_loses_no_line() -> None:
    out = configured()
    logging.getLogger("some.library").warning("took %d s", "long")
    assert [event["event"] for event in events(out)] == ["took %d s"]


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_hostile_text_neither_steers_the_terminal_nor_forges_a_line(log_format: logs.LogFormat) -> None:
    out = configured("info", log_format)
    structlog.get_logger().info("line", text="\x1b[2Ja\rb\n{'level':'error'}\x9b\u202e", name="caf\udce9")
    assert len(out.getvalue().splitlines()) == 1
    assert not {"\x1b", "\r", "\x9b", "\u202e", "\udce9"} & set(out.getvalue())


def test_a_traceback_keeps_its_lines() -> None:
    out = configured()
    structlog.get_logger().error("failed", exc_info=raised(ValueError("bad\x1b")))
    (event,) = events(out)
    assert event["exception"].splitlines()[-1] == r"ValueError: bad\x1b"


def test_a_number_json_cannot_hold_is_written_as_text() -> None:
    out = configured()
    structlog.get_logger().info("big", n=2**70, rate=float("nan"))
    (event,) = events(out)
    assert (event["n"], event["rate"]) == (str(2**70), None)


def test_a_crash_is_logged_without_its_secrets() -> None:
    program = (
        "from verlwatch.fields import Secret; from verlwatch.shell import logs;"
        "logs.configure('info', 'json', [Secret('canary-1a2b3c4d')]); raise RuntimeError('canary-1a2b3c4d')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    (line,) = done.stdout.splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("crashed", "critical")
    assert "RuntimeError: [secret]" in event["exception"]
    assert (done.returncode, done.stderr) == (1, "")
