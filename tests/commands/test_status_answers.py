"""`verlwatch status` asks somebody who is no verlwatch, or does not answer as one should."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from verlwatch.cli import main
from verlwatch.commands import _daemon as command
from verlwatch.status import RunStatus, Status

Talk = Callable[[socket.socket, threading.Event], None]
Serve = Callable[[Talk], str]
GOOD = Status(version="1", started_at=1.0, now=2.0, ready=True, runs=(RunStatus(name="qwen"),))


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Answers each connection as told, until the end of the test."""
    over = threading.Event()
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def begin(talk: Talk) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def answer() -> None:
            with suppress(OSError):  # the end of the test
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):  # the client has gone, as it should
                        connection.recv(65536)
                        talk(connection, over)

        threads.append(threading.Thread(target=answer))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/"

    yield begin
    over.set()
    for listener in listeners:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)


def says(body: bytes, head: str = "HTTP/1.1 200 OK", length: int | None = None) -> Talk:
    size = len(body) if length is None else length
    return lambda to, _: to.sendall(f"{head}\r\nContent-Length: {size}\r\n\r\n".encode() + body)


def resets(to: socket.socket, _: threading.Event) -> None:
    to.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


def never_ends(to: socket.socket, _: threading.Event) -> None:
    to.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        to.sendall(b" " * 65536)


def drips(start: bytes) -> Talk:
    def talk(to: socket.socket, over: threading.Event) -> None:
        to.sendall(start)
        while not over.wait(0.02):
            to.sendall(b"x")

    return talk


def asked(url: str, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = main(["status", "--url", url, *more])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_daemon_is_shown_and_its_json_handed_on(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    body = orjson.dumps(GOOD)
    code, out, _ = asked(serve(says(body)), capsys)
    assert code == 0
    assert "qwen: unknown, no step yet" in out
    assert asked(serve(says(body)), capsys, "--json") == (0, body.decode() + "\n", "")


@pytest.mark.parametrize(
    ("talk", "words"),
    [
        (says(b"<html>hello</html>"), "is no verlwatch"),
        (says(b""), "is no verlwatch"),
        (says(b"null"), "is no verlwatch"),
        (says(b'{"ready": true}'), "is no verlwatch"),
        (says(b"[" * 100_000), "is no verlwatch"),
        (says(b'\xff\xfe{"ready"'), "is no verlwatch"),
        (says(orjson.dumps(GOOD)[:-9], length=4000), "ended too early"),
        (says(b"", "HTTP/1.1 302 Found\r\nLocation: http://a..b/"), "answered 302"),
        (says(b"", "HTTP/1.1 404 Not Found"), "answered 404"),
        (says(b"", "HTTP/1.1 401 No"), "asks for a token; give its file with --token-file"),
        (lambda to, _: to.sendall(b"SSH-2.0-OpenSSH_9.6\r\n"), "no HTTP"),
        (lambda to, _: to.sendall(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000), "no HTTP"),
        (lambda _, __: None, "closed without an answer"),
        (resets, "connection"),
        (never_ends, "too long"),
        (drips(b"HTTP/1.1 200 OK\r\nX: "), "no whole answer within 0.3 s"),
        (drips(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"), "no whole answer within 0.3 s"),
        (lambda _, over: over.wait(10) and None, "no whole answer within 0.3 s"),
    ],
)
def test_whatever_else_answers_is_one_line_and_a_failure(
    talk: Talk, words: str, serve: Serve, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "TIMEOUT_S", 0.3 if "0.3" in words else 10.0)
    monkeypatch.setattr(command, "BODY_LIMIT", 1 << 20)
    url = serve(talk)
    code, out, err = asked(url, capsys)
    assert (code, out) == (1, "")
    assert err.startswith(f"{url}: ")
    assert words in err
    assert err.count("\n") == 1


def test_tls_where_there_is_none_is_one_line_and_a_failure(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    url = serve(says(b"")).replace("http:", "https:")
    code, _, err = asked(url, capsys)
    assert code == 1
    assert err.startswith(f"{url}: cannot connect to 127.0.0.1:")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:1", "ftp://h/", "http://a..b/", "http://[::1", "http://h:99999/", "http://u:canary@h/"]
)
def test_what_is_no_url_is_told_and_not_repeated(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = asked(url or "http://", capsys)
    assert code == 1
    assert err.startswith("--url ")
    assert err.count("\n") == 1
    assert "canary" not in err


def test_a_quiet_question_is_answered_by_the_exit_code_alone(serve: Serve, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(serve(says(orjson.dumps(GOOD))), capsys, "--quiet") == (0, "", "")
    assert asked(serve(says(b"{}")), capsys, "--quiet") == (1, "", "")


def test_a_token_that_only_the_service_is_given_is_named_with_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "verlwatch.yaml"
    config.write_text("http: {token_file: credential:http-token}\n")
    code, _, err = asked("http://127.0.0.1:9/", capsys, "--config", str(config))
    assert code == 1
    assert err.startswith("credential:http-token: ")
    assert "--token-file" in err
