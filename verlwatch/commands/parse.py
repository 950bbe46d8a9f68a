"""`verlwatch parse`: every record that is read from a log, as it is read."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from verlwatch import config as configuration
from verlwatch.commands import _common
from verlwatch.commands._output import say, say_json
from verlwatch.core import steps
from verlwatch.core.lines import KINDS, Reader, rejoined
from verlwatch.core.metrics import metrics
from verlwatch.core.types import Record, Samples, Writer
from verlwatch.replay import PIECE, pieces
from verlwatch.shell.printable import printable

EPILOG = """examples:
  verlwatch parse train.log
  verlwatch parse --json train.log | jq 'select(.step == 120).values["timing_s/gen"]'
  verlwatch parse --paste issue.txt
  kubectl logs verl-head-0 | verlwatch parse -

A value that was cut or could not be read is left out: it is unknown, not zero.  What follows from a step's values is
under "derived" in JSON: seconds by phase (a step without the validation and saving that its release counts in it),
metrics under one name each, milliseconds per token, and the verl releases that print such a line.
"""
SHOWN = 12
"""So many attributes of an event are shown as text; a configuration has hundreds."""

_STDIN = Path("-")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "parse",
        help="every record that is read from a log",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logs", nargs="+", type=Path, metavar="LOG", help="a file; - is standard input")
    parser.add_argument("--json", action="store_true", help="one JSON object a line for each record")
    parser.add_argument("--config", type=Path, metavar="FILE", help="read the `lines` of this configuration, too")
    parser.add_argument(
        "--paste",
        action="store_true",
        help="the log was copied from a terminal or a page: put step lines together that stand in several rows",
    )
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Prints the records of each file in turn; gives the exit code."""
    paths: list[Path] = args.logs
    args.logs = [path for path in paths if path != _STDIN]  # what there is to check
    return _common.on_logs(lambda args: _parse(paths, args))(args)


def _parse(paths: Sequence[Path], args: argparse.Namespace) -> None:
    own = configuration.own_lines(configuration.load(args.config)) if args.config else ()
    for path in paths:
        name = "standard input" if path == _STDIN else str(path)
        data = _input() if path == _STDIN else pieces(path)
        reader = Reader(name, kinds=(*KINDS, *own))
        found = 0
        for piece in [rejoined(b"".join(data))] if args.paste else data:
            found += _print(reader.feed(piece, 0.0), as_json=args.json)
        found += _print(reader.finish(0.0), as_json=args.json)
        if not found:
            print(printable(f"nothing is read in {name}: {_why(reader)}"), file=sys.stderr)


def _input() -> Iterator[bytes]:
    while data := sys.stdin.buffer.read(PIECE):
        yield data


def _why(reader: Reader) -> str:
    if not reader.offset:
        return "it is empty"
    return (
        "no line is of a kind that verlwatch knows (docs/LINES.md lists them); verl prints step lines when "
        "trainer.logger contains 'console', and of a text that was copied from a terminal --paste puts rows together"
    )


def _print(records: list[Record], *, as_json: bool) -> int:
    for record in records:
        if as_json:
            say_json(_data(record))
        else:
            say(printable(_line(record)))
    return len(records)


def _data(record: Record) -> dict[str, Any]:
    origin = record.origin
    head = {"position": origin.end, "writer": origin.writer._asdict()}
    if isinstance(record, Samples):
        values = {"step": record.step, "values": record.values}
        return {"kind": origin.kind, **head, **values, **_derived(record)}
    said = {"severity": record.severity, "attributes": record.attributes, "excerpt": record.excerpt}
    return {"kind": record.name, **head, **said}


def _derived(samples: Samples) -> dict[str, Any]:
    """What follows from the values of a step with timing; nothing for another."""
    printed = steps.timings(samples.values)
    if not printed:
        return {}
    release = steps.release(samples.values, samples.decimals)
    facts = steps.read(samples.values, release, printed)
    derived = {
        "seconds": dict(facts.seconds),
        "metrics": metrics(samples.values),
        "ms_per_token": steps.per_token_ms(samples.values, printed),
        "verl": release or None,
        "verl_is_certain": steps.is_certain(samples.values, samples.decimals),
    }
    return {"derived": derived}


def _line(record: Record) -> str:
    origin = record.origin
    head = f"{origin.end:>10}  {_writer(origin.writer):<24}"
    if isinstance(record, Samples):
        return f"{head}  {origin.kind:<14} step {record.step}, {len(record.values)} values"
    said = ", ".join(f"{key}={value}" for key, value in islice(record.attributes.items(), SHOWN))
    more = f", and {len(record.attributes) - SHOWN} more" if len(record.attributes) > SHOWN else ""
    return f"{head}  {record.name:<14} {said}{more}"


def _writer(writer: Writer) -> str:
    return f"{writer.name} pid={writer.pid}{f' ip={writer.ip}' if writer.ip else ''}" if writer.pid else "-"
