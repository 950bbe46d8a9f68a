"""`verlwatch gpus`: the cards of each run now, beside those that do the same work."""

from __future__ import annotations

import argparse
import socket
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from statistics import median_low

from pydantic import TypeAdapter

from verlwatch import config as configuration
from verlwatch.commands import _cards, _daemon
from verlwatch.commands._output import say, say_json
from verlwatch.core.cards import Cards
from verlwatch.shell._run_view import gpu_status
from verlwatch.shell.gpu import SOURCES, Seen, SourceError, sample_event, sampled
from verlwatch.shell.printable import printable
from verlwatch.status import GpuStatus, RunStatus, Status

EPILOG = """examples:
  verlwatch gpus
  verlwatch gpus --run ppo --json
  verlwatch gpus --here          (asks this host's cards once; no daemon is needed)

Memory is in GiB, as nvidia-smi and verl count.  `offset` is how far a card lately is from the median of the cards that
do the same work, at the same instants; `lately` are its last samples, from nothing to all of its memory.

Exit code 0 with or without cards, 1 when the daemon, or with --here every source, gives no answer.
"""
_AGENT = "an agent judges nothing: ask its hub, or this host's cards with --here"


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "gpus",
        help="the cards of each run, beside their peers",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", metavar="NAME", help="of this run alone")
    parser.add_argument("--here", action="store_true", help="ask the cards of this host once, and no daemon")
    parser.add_argument("--json", action="store_true", help="as JSON")
    _daemon.add_arguments(parser)
    parser.set_defaults(run_command=_daemon.asking(_run))


def _run(args: argparse.Namespace, config: configuration.Config) -> int:
    return _here(args, config) if args.here else _of_daemon(args, config)


def _of_daemon(args: argparse.Namespace, config: configuration.Config) -> int:
    _, body = _daemon.ask(args, config, "/api/v1/status")
    status = TypeAdapter(Status).validate_json(body)
    runs = [run for run in status.runs if args.run in {None, run.name}]
    if args.run is not None and not runs:
        known = _cards.names(run.name for run in status.runs) or "none yet"
        raise ValueError(f"there is no run {args.run}; those that are watched: {known}")
    if args.json:
        say_json([_as_json(run) for run in runs])
        return 0
    if status.role == "agent":
        say(_AGENT)
    elif not runs:
        say("no run is known yet")
    say("\n".join(map(printable, _shown(runs, status.now))), end="\n" if runs else "")
    return 0


def _as_json(run: RunStatus) -> dict[str, object]:
    cards = [asdict(card) for card in run.gpus]
    return {"run": run.name, "gpus": cards, "ranks_compared": run.ranks_compared, "ranks_hint": run.ranks_hint}


def _shown(runs: Sequence[RunStatus], now: float) -> Iterator[str]:
    """The tables of the runs with cards, then what to do for those whose ranks cannot be compared."""
    for run in runs:
        if run.gpus:
            yield f"{run.name}: {_about(run, now)}"
            yield from _cards.table(run.gpus)
            yield ""
    yield from _cards.hints(runs)


def _about(run: RunStatus, now: float) -> str:
    step = f"step {run.step}, " if run.step is not None else ""
    count = len(run.gpus)
    newest = max((card.at for card in run.gpus if card.at is not None), default=None)
    seen = f", seen {max(0.0, now - newest):.0f} s ago" if newest is not None else ""
    return f"{step}{count} {'card' if count == 1 else 'cards'}{seen}"


# ---------------------------------------------------------------------------------------------------- this host
def _here(args: argparse.Namespace, config: configuration.Config) -> int:
    wanted = config.gpu.source
    kinds = [kind for kind in SOURCES if wanted in {"auto", "off", kind.NAME}]
    try:
        seen = sampled(kinds)
    except SourceError as error:
        print(printable(f"no GPU of this host is seen: {error}"), file=sys.stderr)
        return 1
    host = socket.gethostname()
    cards = _beside(of_host(seen, host))
    if args.json:
        say_json([{"host": host, "source": seen.source, "notes": seen.sample.notes, "gpus": list(map(asdict, cards))}])
        return 0
    lines = [f"{host}: {len(cards)} {'card' if len(cards) == 1 else 'cards'} by {seen.source}", *_cards.table(cards)]
    say("\n".join(map(printable, [*lines, *seen.sample.notes])))
    return 0


def of_host(seen: Seen, host: str) -> list[GpuStatus]:
    """The cards as they would be judged: what is known of each, without a past."""
    cards = Cards("")
    for card in seen.sample.cards:
        cards.hear(sample_event(card, seen.who, 0.0, host), -1, 0.0)
    return [replace(gpu_status(row), recent=(row["used_gb"],), at=None, group=None) for row in cards.table()]


def _beside(cards: Sequence[GpuStatus]) -> list[GpuStatus]:
    """With the offset of each from the median of all: who does the same work is not known of one look."""
    used = [card.used_gb for card in cards if card.used_gb is not None]
    middle = median_low(used) if len(used) > 1 else None
    return [
        card if middle is None or card.used_gb is None else replace(card, offset_gb=card.used_gb - middle)
        for card in cards
    ]
