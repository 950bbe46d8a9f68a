"""Asking the daemon that runs: where it is, how it is known, what it answers."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import ssl
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from verlwatch import config as configuration
from verlwatch.fields import CREDENTIAL, SecretError, parse_url, read_secret
from verlwatch.shell.fleet import tls
from verlwatch.shell.fleet.tls import TlsError
from verlwatch.shell.printable import printable
from verlwatch.shell.state_dir import Served, served

TIMEOUT_S = 5.0
CHANGE_TIMEOUT_S = 15.0
"""For what has to be committed: longer than the daemon itself waits for that, so that it is the one to say so."""
BODY_LIMIT = 64 << 20
"""Bytes of an answer; the status of a thousand runs has a few million."""
IS_IT = "is the daemon running, and is this its address? (--url)"
_IS_KNOWN = (
    "is the daemon running, is this its address (--url), who has signed its certificate (--ca), and does it ask for "
    "one (--certificate, --key)?"
)
_KEY = re.compile(r"[0-9A-Za-z_-]{1,64}")
_NAME_IT = "name another with --state-dir, or the daemon's address with --url"


class NoDaemon(OSError):  # noqa: N818 - names the situation
    """No daemon that serves anything holds the state directory."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which daemon, and how it is reached."""
    parser.add_argument("--url", metavar="URL", help="the daemon's status page (default: as the daemon noted it)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration of the daemon")
    parser.add_argument("--state-dir", metavar="DIR", help="state directory of the daemon (default: as configured)")
    parser.add_argument("--token-file", metavar="FILE", help="file with the bearer token, where one is configured")
    parser.add_argument("--ca", metavar="FILE", help="certificate (PEM) of the authority that signed the daemon's")
    parser.add_argument(
        "--certificate", metavar="FILE", help="certificate (PEM) to show, where the daemon asks for one"
    )
    parser.add_argument("--key", metavar="FILE", help="its key (PEM; default: in the same file)")


def config_of(args: argparse.Namespace) -> configuration.Config:
    """What the daemon is configured with.  Raises ConfigError."""
    path: Path | None = args.config or configuration.find()
    config = configuration.load(path) if path else configuration.Config()
    return configuration.apply(config, os.environ, {"state_dir": args.state_dir})


def ask(
    args: argparse.Namespace, config: configuration.Config, path: str, asked: Any = None, method: str | None = None
) -> tuple[str, bytes]:
    """The daemon's URL and its answer at a path: to a GET, with ``asked``, a JSON value, to a POST, or to ``method``.

    Raises:
        NoDaemon: none serves anything.
        OSError: no answer within TIMEOUT_S (CHANGE_TIMEOUT_S), or a no; the text names the URL.
        ValueError: the URL is none.
        SecretError, TlsError: a token, certificate or key cannot be used.
    """
    where = Served(args.url) if args.url else _served(config)
    token = _token(args.token_file or config.http.token_file)
    return where.url, asyncio.run(_ask(where.url, path, token, _tls(args, where, config), asked, method))


def asking(
    what: Callable[[argparse.Namespace, configuration.Config], int],
) -> Callable[[argparse.Namespace], int]:
    """A command that asks the daemon: what goes wrong on the way is told, exit code 1; 2 for a bad configuration."""

    def run(args: argparse.Namespace) -> int:
        try:
            return what(args, config_of(args))
        except configuration.ConfigError as error:
            print(error, file=sys.stderr)
            return 2
        except ValidationError:
            print(f"what answers is no verlwatch, or one of another version; {IS_IT}", file=sys.stderr)
        except (OSError, ValueError, SecretError, TlsError) as error:
            print(printable(str(error)), file=sys.stderr)
        return 1

    return run


def key(text: str, what: str) -> str:
    """``text`` as the id of something, which is one part of the path of a URL.  Raises ValueError."""
    if not _KEY.fullmatch(text):
        raise ValueError(f"{text!r} is no id of {what}; an id has up to 64 of A-Z, a-z, 0-9, - and _, such as 1a2b3c4d")
    return text


def _served(config: configuration.Config) -> Served:
    """Where the daemon of the state directory serves its status.

    Never a configured address alone: the daemon may have taken another port, and whoever listens there may be a
    stranger, who must not be shown as ours and not be sent the token.

    Raises:
        NoDaemon: no daemon holds the state directory.
        OSError: it cannot be looked into.
    """
    folder = configuration.state_dir(config)
    try:
        found = served(folder)
    except OSError as error:
        raise OSError(f"{folder}: {error.strerror}; {_NAME_IT}") from None
    if found is None:
        raise NoDaemon(f"no daemon that serves its status runs on state directory {folder}; {_NAME_IT}")
    return found


def _tls(args: argparse.Namespace, asked: Served, config: configuration.Config) -> ssl.SSLContext | None:
    """How the daemon is known, and what it is shown; None for plain HTTP.

    A daemon of this host that asks for certificates is shown its own, where nothing else is given.

    Raises:
        TlsError: a certificate or key cannot be used.
    """
    if not asked.url.lower().startswith("https:"):
        return None
    certificate, key = args.certificate, args.key
    if asked.certificate and config.http.client_ca and not certificate:
        certificate, key = config.http.tls_certificate, config.http.tls_key
    if asked.certificate and not args.ca:
        return tls.pinned(asked.certificate, certificate, key)
    return tls.client(args.ca, certificate, key)


def _token(path: str | None) -> str | None:
    """The token in a file.

    Raises:
        SecretError: there is none, or only the daemon can read it.
    """
    if path is None:
        return None
    if path.startswith(CREDENTIAL) and not os.environ.get("CREDENTIALS_DIRECTORY"):
        raise SecretError(f"{path}: only the service is given it; name the file itself with --token-file")
    return read_secret(path).reveal()


async def _ask(
    url: str, path: str, token: str | None, context: ssl.SSLContext | None, asked: Any, method: str | None
) -> bytes:
    """See `ask`.  The environment's proxies are for other hosts than ours."""
    # other commands need no HTTP client
    from verlwatch.shell.notifiers import DeliveryError, fetch, open_session  # noqa: PLC0415

    try:
        address = f"{parse_url(url).rstrip('/')}{path}"
    except ValueError as error:
        raise ValueError(f"--url {error}") from None
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    body = None if asked is None else orjson.dumps(asked)
    patience = TIMEOUT_S if method is None and asked is None else CHANGE_TIMEOUT_S
    try:
        async with asyncio.timeout(patience), open_session() as session:
            code, answer = await fetch(session, address, headers, BODY_LIMIT, context, body, method)
    except TimeoutError:
        raise OSError(f"{url}: no whole answer within {patience:g} s; {IS_IT}") from None
    except DeliveryError as error:
        raise OSError(f"{url}: {error}; {_IS_KNOWN if context else IS_IT}") from None
    if code == 401:  # noqa: PLR2004 - HTTP's word for it
        raise OSError(f"{url}: asks for {'another' if token else 'a'} token; give its file with --token-file")
    if code != 200:  # noqa: PLR2004 - HTTP's yes
        raise OSError(f"{url}: {_said(answer) or f'answered {code}; {IS_IT}'}")
    return answer


def _said(answer: bytes) -> str | None:
    """What a daemon says of why it does not do something."""
    try:
        said = orjson.loads(answer)["error"]
    except (ValueError, TypeError, KeyError):
        return None
    return said if isinstance(said, str) else None
