"""`verlwatch attach JOBID`: the daemon for a job of Slurm."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from verlwatch.commands import run as run_command
from verlwatch.shell import slurm
from verlwatch.shell.printable import printable
from verlwatch.shell.slurm import Job, SlurmError

EPILOG = """examples:
  verlwatch attach 4711 --slack-webhook-file ~/.slack-webhook
  verlwatch attach 4711_3                          a task of an array
  verlwatch attach 4711 --log runs/train.log       where the script sends its output elsewhere

Asks `scontrol show job` for the files that the job's output goes to and watches them as `verlwatch run --log` does, and
asks again every 30 s how the job stands, until when it may run and how it has ended.  Every setting of `verlwatch run`
holds here too (--config, --state-dir ...).
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declares the command."""
    parser = subparsers.add_parser(
        "attach",
        help="watch a job of Slurm",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", metavar="JOBID", help="id of the job: 4711, 4711_3 of an array")
    parser.add_argument("--config", type=Path, metavar="FILE", help="configuration file, for who is told")
    parser.add_argument(
        "--log",
        action="append",
        metavar="LOG",
        help="log or glob to watch instead of the job's output; may be repeated",
    )
    run_command.add_run(parser, default="the job's")
    run_command.add_receivers(parser)
    run_command.add_settings(parser)
    parser.set_defaults(run_command=run)


def run(args: argparse.Namespace) -> int:
    """Runs until stopped; 1 where Slurm does not tell of the job or of its log, 2 when the configuration is bad."""
    if not slurm.is_job_id(args.job):
        print(
            f"{printable(args.job)!r} is no id of a Slurm job; it is a number such as 4711, or 4711_3", file=sys.stderr
        )
        return 2
    try:
        job = slurm.ask(args.job)
    except SlurmError as error:
        print(printable(str(error)), file=sys.stderr)
        return 1
    files = args.log or job.logs
    if not files:
        print(
            f"job {job.job} has no file of its own for what it prints (salloc, srun?): name one with --log LOG",
            file=sys.stderr,
        )
        return 1
    print(printable(told(job, files)), file=sys.stderr)
    name = args.run_name or run_command.run_name(job.name or job.job)
    flags = vars(args) | {"slurm_job": job.job, "run_name": name}
    if not args.log:
        flags["log"] = run_command.literally(files)
    return run_command.run_with(args.config, flags)


def told(job: Job, files: tuple[str, ...]) -> str:
    """What is watched, in a line."""
    where = f" on {job.nodes}" if job.nodes else ""
    ended = f" ({job.reason})" if job.is_over and job.reason else ""
    missing = "; it is not there yet" if not any(Path(file).exists() for file in files) else ""
    return f"job {job.job} ({job.name}) is {job.state}{ended}{where}: watching {', '.join(files)}{missing}"
