"""Durations, sizes, shares, rates, URLs and secrets: what is read, what is refused, and that secrets stay secret."""

from __future__ import annotations

import copy
import logging
import os
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

from verlwatch.fields import (
    Secret,
    SecretError,
    host_of,
    parse_duration,
    parse_name,
    parse_rate,
    parse_share,
    parse_size,
    parse_url,
    read_secret,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("100ms", 0.1),
        ("5s", 5),
        ("2m", 120),
        ("1h", 3600),
        ("1.5h", 5400),
        ("90d", 7_776_000),
        ("2w", 1_209_600),
        (" 5 s ", 5),
        ("5S", 5),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0B", 0),
        ("64KiB", 65_536),
        ("1MiB", 1 << 20),
        ("1.5 GiB", 3 << 29),
        ("2GB", 2 * 10**9),
        ("2gb", 2 * 10**9),
        ("1kB", 1000),
        ("1TiB", 1 << 40),
    ],
)
def test_a_size_is_read_in_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size
    assert isinstance(parse_size(text), int)


@pytest.mark.parametrize(("text", "share"), [("1%", 0.01), ("0%", 0), ("2.5 %", 0.025), ("100%", 1)])
def test_a_share_is_read_as_a_part_of_one(text: str, share: float) -> None:
    assert parse_share(text) == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "per_month"),
    [
        ("1 per month per run", 1),
        ("2 per week per run", 60 / 7),
        ("0.5 per day", 15),
        ("1  per  hour per run", 720),
        ("1 per year per run", 30 / 365),
    ],
)
def test_a_rate_is_read_per_month_of_thirty_days(text: str, per_month: float) -> None:
    assert parse_rate(text) == pytest.approx(per_month)


@pytest.mark.parametrize("parse", [parse_duration, parse_size, parse_share, parse_rate])
def test_a_python_number_stands_for_itself_unless_it_cannot(parse: Callable[[object], float]) -> None:
    assert parse(1) == 1
    for bad in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="must be a finite number, not negative"):
            parse(bad)


@pytest.mark.parametrize("parse", [parse_duration, parse_size, parse_share, parse_rate])
@pytest.mark.parametrize(
    "value", [None, True, [], {}, "", "-1s", "1e3s", "s", "1,5s", "٣s", "9" * 13 + "s", "1s1s", "1 per", "% 1", "NaN"]
)
def test_what_is_no_such_value_is_refused_with_an_example(parse: Callable[[object], float], value: object) -> None:
    with pytest.raises(ValueError, match="; write for example "):
        parse(value)


def test_a_unit_that_is_missing_or_unknown_is_named() -> None:
    with pytest.raises(ValueError, match=r"has no unit; write for example 100ms, 5s, 2m, 1h or 90d \(units: ms, s,"):
        parse_duration("5")
    with pytest.raises(ValueError, match="unknown unit 'parsecs'; write for example 64KiB, 1MiB or 2GB"):
        parse_size("5 parsecs")


def test_a_share_over_all_is_refused() -> None:
    with pytest.raises(ValueError, match="must not be over 100%"):
        parse_share("101%")


@pytest.mark.parametrize(
    "url",
    [
        "https://host.example/path?a=b",
        "http://127.0.0.1:8080",
        "https://[::1]:1/x",
        "HTTPS://host.example",
        "http://h/a@b",
        "http://host_1.example.:443",
        "http://bücher.example/",
        "http://[::ffff:1.2.3.4]/",
    ],
)
def test_an_http_url_is_taken_as_written(url: str) -> None:
    assert parse_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host.example/canary",
        "ftp://host.example/canary",
        "file:///canary",
        "javascript:canary",
        "https://",
        "https:///canary",
        "https://[canary",
        "https://host:99999/canary",
        "https://host:0/canary",
        "https://host:port/canary",
        "https://host/canary path",
        "https://host/canary\n",
        " https://host/canary",
        "https://host/\u202ecanary",
        "https://user:canary@host/",
        "https://user@host/canary",
        "https://canary..example/",
        "https://.canary/",
        "https://canary.example../",
        f"https://canary{'a' * 60}/",
        f"https://canary{'é' * 80}.example/",
        f"https://canary{'.abcdefgh' * 30}/",
        "https://xn--/canary",
        "https://can,ary/",
        "https://canary%20x/",
        "https://canary\\x/",
        "https://*/canary",
        "https://::1/canary",
        "https://[::1]canary/",
        "https://canary[::1]/",
        "https://[v1.canary]/",
        "https://1.2.3.4.5/canary",
        "https://256.1.1.1/canary",
    ],
)
def test_what_is_no_http_url_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match=r"; write for example |; take it out") as caught:
        parse_url(url)
    assert "canary" not in str(caught.value)


ODD = [*".-_:[]%\\@/?#*019aXß.\N{FULLWIDTH LATIN CAPITAL LETTER A}\N{ONE DOT LEADER}", "xn--", "..", "a" * 63, "ß" * 30]


@settings(max_examples=1000, deadline=None)
@given(
    st.lists(st.one_of(st.sampled_from(ODD), st.characters()), max_size=8).map("".join),
    st.sampled_from(["", ":", ":1", ":065535", ":65536", "/x"]),
)
def test_a_url_that_is_taken_can_be_asked_for(host: str, rest: str) -> None:
    text = f"https://{host}{rest}"
    try:
        parse_url(text)
    except ValueError:
        return
    url = URL(text)
    assert url.host
    assert url.port
    assert (url.raw_host or "").encode("idna")


@pytest.mark.parametrize("host", ["watch.example.org", "Watch.example.org:8443", "127.0.0.1", "[::1]:80", "::1"])
def test_a_host_is_found_in_what_names_it(host: str) -> None:
    assert host_of(host) in {"watch.example.org", "127.0.0.1", "::1"}
    assert host_of(f"a..{host}") == ""


@pytest.mark.parametrize("name", ["", "Team", "a b", "a.b", "ä", "a\n", "x" * 65])
def test_a_receiver_name_is_short_and_plain(name: str) -> None:
    assert parse_name("team-slack_2") == "team-slack_2"
    with pytest.raises(ValueError, match="must consist of a-z, 0-9, _ and -"):
        parse_name(name)


@pytest.mark.parametrize("content", [b"canary", b"canary\n", b"canary\r\n"])
def test_a_secret_is_the_content_of_its_file_without_the_line_end(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    assert read_secret(str(file)).reveal() == "canary"


def test_a_secret_shows_nowhere_but_where_it_is_revealed(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("canary")
    logging.getLogger("test").error("%s %r", secret, secret)
    texts = [str(secret), repr(secret), f"{secret}", f"{secret!r:>9}", str([secret]), str({"a": secret}), caplog.text]
    assert "canary" not in "".join(texts)
    assert str(secret) == "***"
    for leak in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="a secret is not serialised"):
            leak(secret)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is empty; write the secret into it"),
        (b" \n", "is empty; write the secret into it"),
        (b"canary\xff", "is no UTF-8 text; it must hold the secret as plain text"),
        (b"canary" * 11_000, "is over 64 KiB; it must hold the secret only"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused_and_not_repeated(content: bytes, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_bytes(content)
    with pytest.raises(SecretError) as caught:
        read_secret(str(file))
    assert str(caught.value) == f"{file}: {reason}"
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_secret_that_is_missing_a_folder_or_a_fifo_is_named_with_the_remedy(tmp_path: Path) -> None:
    remedy = "create it with the secret as its only line, readable by the user verlwatch runs as (mode 0600)"
    with pytest.raises(SecretError, match=r"none: no such file or directory") as caught:
        read_secret(str(tmp_path / "none"))
    assert str(caught.value).endswith(remedy)
    with pytest.raises(SecretError, match="is a directory"):
        read_secret(str(tmp_path))
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(SecretError, match="is no regular file; create it with the secret"):
        read_secret(str(tmp_path / "fifo"))


def test_a_credential_is_read_where_systemd_put_it(tmp_path: Path) -> None:
    (tmp_path / "slack").write_text("canary\n")
    assert read_secret("credential:slack", {"CREDENTIALS_DIRECTORY": str(tmp_path)}).reveal() == "canary"
    with pytest.raises(SecretError, match=r"systemd passed no credentials .* add LoadCredential= to the unit"):
        read_secret("credential:slack", {})
