"""A configuration for the trainings that were found, written for people to go on with."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from time import gmtime, strftime

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from verlwatch.config import Config
from verlwatch.core.phases import STEP
from verlwatch.fields import Model
from verlwatch.shell.run_names import NAME_LIMIT, run_of
from verlwatch.shell.survey import Log

RECEIVERS = """\
# Who is told.  As long as nobody is, the status page alone shows what is found.
# receivers:
#   - name: team
#     type: slack
#     webhook_url_file: slack-webhook  # file with the URL of the incoming webhook, mode 0600
"""

_ANYBODYS = frozenset({"console", "debug", "driver", "log", "logs", "main", "nohup", "out", "output", "run", "train"})
"""File names that say nothing of the run; its folder does."""
_SPANS = ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def draft(trainings: Sequence[Sequence[Log]], now: float, root: str | None) -> str:
    """The text of the file.  ``root`` is verl's ``$VERL_FILE_LOGGER_ROOT``, where one is set."""
    names: list[str] = []
    for logs in trainings:
        names.append(_unused(_name(logs), names))
    when = strftime("%Y-%m-%d %H:%M UTC", gmtime(now))
    lines = [
        f"# Written by `verlwatch init` on {when}, with the trainings that were found then.",
        "# Check it with `verlwatch check --config FILE`, begin with `verlwatch run --config FILE`.",
        "",
        "runs:",
        *(line for name, logs in zip(names, trainings, strict=True) for line in _run(name, logs, now)),
    ]
    if root is not None:
        lines += [
            "  # In place of the JSONL logs above: every experiment below verl's log root, those to come as well.",
            '  # - name: "{folder}/{file}"',
            f"  #   logs: [{_text(root.rstrip('/') + '/*/*.jsonl')}]",
        ]
    return "\n".join([*lines, "", RECEIVERS, "# All other settings, with their defaults.", *_settings(), ""])


def described(logs: Sequence[Log], now: float) -> str:
    """Why this is a training: its last step, when it last grew, what printed it."""
    last = max(logs, key=lambda log: -1 if log.step is None else log.step)
    parts = ["no step yet"]
    if last.step is not None:
        seconds = last.seconds[last.step].get(STEP)
        parts = [f"step {last.step}" + (f" ({seconds:.1f} s)" if seconds else "")]
    parts.append(f"grew {_span(now - max(log.changed_at for log in logs))} ago")
    release = next((log.release for log in logs if log.release), "")
    return ", ".join([*parts, f"verl {release}"] if release else parts)


def _run(name: str, logs: Sequence[Log], now: float) -> Iterator[str]:
    yield f"  # {described(logs, now)}"
    yield f"  - name: {_text(name)}"
    yield "    logs:"
    for log in sorted(logs, key=lambda log: (log.ray, log.path.endswith(".jsonl"))):
        kind = "Ray session, its newest training" if log.ray else "JSONL" if log.path.endswith(".jsonl") else "console"
        yield f"      - {_text(log.path)}  # {kind}"


def _name(logs: Sequence[Log]) -> str:
    """Project and experiment where verl's own file log tells them, else what the console log is called."""
    files = sorted((log.path for log in logs if not log.ray), key=lambda path: not path.endswith(".jsonl"))
    if not files:
        return "ray"
    path = PurePath(files[0])
    if path.suffix == ".jsonl":
        pattern = "{folder}/{file}"
    else:
        pattern = "{folder}" if path.stem.lower() in _ANYBODYS else "{file}"
    # a name in braces would stand for something else in the configuration
    return run_of(pattern, files[0]).replace("{", "(").replace("}", ")").strip() or "run"


def _unused(name: str, names: Sequence[str]) -> str:
    number, unused = 1, name
    while unused in names:
        number += 1
        unused = f"{name[: NAME_LIMIT - 5]}-{number}"
    return unused


def _settings() -> Iterator[str]:
    for name, field in Config.model_fields.items():
        section = field.annotation
        if isinstance(section, type) and issubclass(section, Model):
            yield f"# {name}:"
            yield from (f"#   {_setting(key, of)}" for key, of in section.by_key().items())
        elif name not in {"runs", "receivers"}:
            yield f"# {_setting(name, field)}"


def _setting(key: str, field: FieldInfo) -> str:
    default = "null" if field.default in {None, PydanticUndefined} else field.default
    if isinstance(default, tuple):
        default = f"[{', '.join(map(str, default))}]"
    return f"{key}: {default}  # {field.description}"


def _text(text: str) -> str:
    """As YAML reads it back whatever stands in it: quoted as in JSON."""
    return json.dumps(text, ensure_ascii=False)


def _span(seconds: float) -> str:
    seconds = max(1.0, seconds)
    size, unit = next((size, unit) for size, unit in _SPANS if seconds >= size)
    return f"{seconds // size:.0f} {unit}"
