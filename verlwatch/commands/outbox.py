"""`verlwatch outbox`: what waits for receivers, what they refused, sending it again, letting go of it."""

from __future__ import annotations

import argparse
import asyncio
import sys
from datetime import UTC, datetime
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from verlwatch import config as configuration
from verlwatch.commands import _daemon
from verlwatch.commands._output import say, say_json
from verlwatch.fields import SecretError
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.fleet.tls import TlsError
from verlwatch.shell.letters import PATH, Letters
from verlwatch.shell.printable import printable
from verlwatch.shell.store import StateDirError, Store, StoreDamaged, StoreUnavailable

EPILOG = """examples:
  verlwatch outbox list
  verlwatch outbox retry 17          (a dead letter, once what its receiver refused it for is mended)
  verlwatch outbox retry --all
  verlwatch outbox drop 17
  verlwatch outbox drop --all --receiver old-team    (dead letters of a receiver that is gone)
  sudo verlwatch outbox list --state-dir /var/lib/verlwatch    (of the daemon that systemd runs)

The daemon that holds the state directory is asked, as by `verlwatch status`.  Where none runs its database is opened
instead.  A dead letter is not sent again where its receiver has taken a newer message of the same incident.
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "outbox",
        help="what waits for receivers, and dead letters",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="list|retry|drop", required=True)
    listing = verbs.add_parser("list", help="what waits and what was given up, oldest first")
    listing.add_argument("--json", action="store_true", help="as JSON")
    retry = verbs.add_parser("retry", help="send dead letters again")
    which = retry.add_mutually_exclusive_group(required=True)
    which.add_argument("ids", nargs="*", type=int, default=[], metavar="ID", help="number of a dead letter")
    which.add_argument("--all", action="store_true", help="all of them")
    drop = verbs.add_parser("drop", help="let go of what waits or was given up")
    which = drop.add_mutually_exclusive_group(required=True)
    which.add_argument("ids", nargs="*", type=int, default=[], metavar="ID", help="number of a message")
    which.add_argument("--all", action="store_true", help="all dead letters; what still waits is kept")
    drop.add_argument("--receiver", metavar="NAME", help="with --all: of this receiver alone")
    for verb, what in ((listing, _list), (retry, _retry), (drop, _drop)):
        _daemon.add_arguments(verb)
        verb.set_defaults(run_command=run, what=what)


def run(args: argparse.Namespace) -> int:
    """Asks, and says what came of it; 1 where something was not done, 2 for a configuration that cannot be used."""
    try:
        code: int = args.what(args, _daemon.config_of(args))
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    except (OSError, ValueError, SecretError, TlsError, StateDirError, StoreUnavailable, StoreDamaged) as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    return code


def _list(args: argparse.Namespace, config: configuration.Config) -> int:
    letters = _answer(args, config, PATH)["letters"]
    if args.json:
        say_json(letters, orjson.OPT_INDENT_2)
        return 0
    now = SystemClock().now()
    if not letters:
        say("nothing waits, and nothing was given up")
    for letter in letters:
        say(printable(_line(letter, now)))
        if letter["error"]:
            say(printable(f"         {letter['error']}"))
    return 0


def _line(letter: dict[str, Any], now: float) -> str:
    created = datetime.fromtimestamp(letter["created_at"], UTC).astimezone()
    attempts = letter["attempts"]
    tries = f", {attempts} {'try' if attempts == 1 else 'tries'}" if attempts else ""
    if attempts and letter["due_at"] is not None:
        tries += f", next in {max(0.0, letter['due_at'] - now):.0f} s"
    return (
        f"{letter['id']:>7}  {letter['status']:<8} {letter['receiver']:<12} {letter['reason']:<10} "
        f"{created:%Y-%m-%d %H:%M:%S %z}{tries}  {letter['title']}"
    )


def _retry(args: argparse.Namespace, config: configuration.Config) -> int:
    asked = {"all": True} if args.all else {"ids": args.ids}
    answer = _answer(args, config, f"{PATH}/retry", asked)
    say(f"to be sent again: {_numbers(answer['retried'])}")
    if answer["superseded"]:
        say(f"not sent, newer messages of their incidents have been delivered: {_numbers(answer['superseded'])}")
    for name, ids in answer.get("removed", {}).items():
        print(printable(_stray(name, ids)), file=sys.stderr)
    return _unknown(answer, "no dead letters") or int(bool(answer.get("removed") and not args.all))


def _stray(name: str, ids: list[int]) -> str:
    return (
        f"not sent, no receiver is called {name} any more: {_numbers(ids)}; configure one of this name to have them "
        f"sent, or let go of them: verlwatch outbox drop --all --receiver {name}"
    )


def _drop(args: argparse.Namespace, config: configuration.Config) -> int:
    if args.receiver is not None and not args.all:
        raise ValueError("--receiver goes with --all; numbers are of one receiver each")
    asked = {"all": True, "receiver": args.receiver} if args.all else {"ids": args.ids}
    answer = _answer(args, config, f"{PATH}/drop", asked)
    say(f"dropped: {_numbers(answer['dropped'])}")
    return _unknown(answer, "neither waiting nor given up")


def _unknown(answer: dict[str, Any], what: str) -> int:
    if not answer["unknown"]:
        return 0
    print(f"{what}: {_numbers(answer['unknown'])}; `verlwatch outbox list` shows what there is", file=sys.stderr)
    return 1


def _numbers(ids: list[int]) -> str:
    return ", ".join(map(str, ids)) or "none"


def _answer(args: argparse.Namespace, config: configuration.Config, path: str, asked: Any = None) -> dict[str, Any]:
    """What the daemon answers, or where none runs, what it would.

    Raises:
        OSError, ValueError, SecretError, TlsError: see `_daemon.ask`.
        StateDirError, StoreUnavailable, StoreDamaged: the database cannot be used.
    """
    try:
        url, body = _daemon.ask(args, config, path, asked)
    except _daemon.NoDaemon:
        return asyncio.run(_without_daemon(config, path, asked))
    try:
        return TypeAdapter(dict[str, Any]).validate_json(body)
    except ValidationError:
        raise ValueError(f"{url}: what answers is no verlwatch, or one of another version; {_daemon.IS_IT}") from None


async def _without_daemon(config: configuration.Config, path: str, asked: Any) -> dict[str, Any]:
    folder = configuration.state_dir(config)
    if not (folder / "state.db").exists():
        raise OSError(f"{folder} holds no database; name the daemon's with --state-dir")
    store = await Store.open(folder)
    try:
        names = {receiver.name for receiver in config.receivers}
        actions = Letters(store.outbox, SystemClock(), lambda: names, lambda: None).actions()
        return dict(await actions["GET" if asked is None else "POST", path](asked or {}))
    finally:
        await store.close()
