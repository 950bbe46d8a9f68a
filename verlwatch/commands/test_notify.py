"""`verlwatch test-notify`: sends a sample message to a receiver, or shows what would be sent."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import get_args

import orjson

from verlwatch import config as configuration
from verlwatch.commands._output import say, say_json
from verlwatch.config import Config
from verlwatch.core.incidents import route
from verlwatch.core.types import Severity
from verlwatch.fields import ReceiverConfig, SecretError
from verlwatch.shell.clock import SystemClock
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch test-notify --config verlwatch.yaml              every receiver
  verlwatch test-notify team --config verlwatch.yaml         one of them
  verlwatch test-notify --slack-webhook-file FILE --dry-run  print the payload, send nothing
  verlwatch test-notify --route critical phase_shift my-run  who would hear of such an incident; sends nothing
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "test-notify",
        help="send a sample message to a receiver",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("receiver", nargs="?", metavar="RECEIVER", help="name of the receiver (default: all)")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file")
    parser.add_argument("--slack-webhook-file", metavar="FILE", help="file that holds a Slack incoming webhook's URL")
    parser.add_argument("--webhook-url", metavar="URL", help="URL of a generic webhook")
    parser.add_argument("--dry-run", action="store_true", help="print the payload, send nothing")
    parser.add_argument(
        "--route",
        nargs=3,
        metavar=("SEVERITY", "RULE", "RUN"),
        help="say where such an incident would go; send nothing",
    )
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Sends or prints; 1 when a receiver does not take the message, 2 when there is no such receiver."""
    given = args.slack_webhook_file or args.webhook_url
    path: Path | None = args.config or (None if given else configuration.find())
    try:
        config = configuration.apply(configuration.load(path) if path else Config(), os.environ, vars(args))
    except configuration.ConfigError as error:
        print(error, file=sys.stderr)
        return 2
    if args.route:
        return _show_route(config, *args.route)
    chosen = [r for r in config.receivers if args.receiver in {None, r.name}]
    if not chosen:
        known = ", ".join(receiver.name for receiver in config.receivers)
        text = f"no receiver is called {args.receiver}; known: {known}" if known else "no receiver is configured"
        print(text, file=sys.stderr)
        return 2
    now, link = SystemClock().now(), configuration.settings(config).link
    return max(asyncio.run(_tell(receiver, now, link, dry_run=args.dry_run)) for receiver in chosen)


def _show_route(config: Config, wanted: str, rule: str, run: str) -> int:
    """Prints who hears of such an incident and by which route; 2 for what cannot be."""
    known: tuple[Severity, ...] = get_args(Severity)
    severity = next((one for one in known if one == wanted), None)
    if severity is None:
        print(f"{printable(wanted)} is no severity; give one of {', '.join(known)}", file=sys.stderr)
        return 2
    settings = configuration.settings(config)
    taken = next((index for index, one in enumerate(settings.routes) if one.takes(severity, rule, run)), None)
    names = route(settings.routes, settings.receivers, severity, rule, run)
    by = "no route takes it, so all are told" if taken is None else f"routes[{taken}] takes it"
    say(printable(f"{', '.join(names) or 'nobody'}: {by}"))
    return 0


async def _tell(receiver: ReceiverConfig, now: float, link: str, *, dry_run: bool) -> int:
    from verlwatch.shell.notifiers import (  # noqa: PLC0415 - other commands need no HTTP client
        DeliveryError,
        build,
        in_language,
        notifier_type,
        open_session,
        sample_end,
        sample_message,
    )

    message = sample_message(now, link)
    opened, ended = (in_language(one, receiver.language) for one in (message, sample_end(message)))
    key = f"{message.incident}-1"
    if dry_run:
        payload = notifier_type(receiver).render(opened, key)
        say_json(payload, orjson.OPT_INDENT_2)
        return 0
    try:
        async with open_session() as session:
            notifier = build(receiver, session)
            await notifier.send(notifier.render(opened, key), key)
            if notifier.PAGES:
                key = f"{message.incident}-2"
                await notifier.send(notifier.render(ended, key), key)
    except (DeliveryError, SecretError) as error:
        print(f"{receiver.name}: not delivered: {error}", file=sys.stderr)
        return 1
    say(f"{receiver.name}: delivered")
    return 0
