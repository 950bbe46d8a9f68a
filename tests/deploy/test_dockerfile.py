"""deploy/Dockerfile, read without an engine: it runs nobody as root and copies what exists."""

from __future__ import annotations

import json
import re

from tests.tools import ROOT
from verlwatch.config import OVERRIDES, Config, variable

PROGRAM = "/opt/verlwatch/bin/verlwatch"


def instructions() -> list[tuple[str, str]]:
    """(INSTRUCTION, arguments) of the file, continued lines joined, comments left out."""
    text = (ROOT / "deploy" / "Dockerfile").read_text()
    lines = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ").splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line)]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    start = max(i for i, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


def value(name: str) -> str:
    (found,) = (rest for word, rest in last_stage() if word == name)
    return found


def test_only_instructions_docker_knows() -> None:
    known = {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "VOLUME", "EXPOSE", "USER", "STOPSIGNAL", "HEALTHCHECK"}
    assert {word for word, _ in instructions()} - {"ENTRYPOINT", "CMD"} == known


def test_it_runs_as_a_numbered_user_that_is_not_root() -> None:
    user, _, group = value("USER").partition(":")
    assert int(user) > 0
    assert int(group) > 0
    after = [word for word, _ in last_stage()]
    assert after.index("USER") < after.index("ENTRYPOINT")


def test_what_it_copies_exists_and_is_the_program_alone() -> None:
    copied = [rest.split()[:-1] for word, rest in instructions() if word == "COPY" and not rest.startswith("--from")]
    names = [name for names in copied for name in names]
    assert names == ["pyproject.toml", "README.md", "LICENSE", "verlwatch"]
    assert [name for name in names if not (ROOT / name).exists()] == []


def test_later_stages_copy_only_from_earlier_ones() -> None:
    stages = [rest.split()[2] for word, rest in instructions() if word == "FROM" and " AS " in rest]
    froms = re.findall(r"--from=(\S+)", " ".join(rest for word, rest in instructions() if word == "COPY"))
    assert froms == stages


def test_no_shell_takes_part() -> None:
    for word, rest in instructions():
        if word in {"RUN", "CMD", "ENTRYPOINT"}:
            assert json.loads(rest), f"{word} {rest}"
    health = value("HEALTHCHECK")
    assert json.loads(health[health.index("CMD ") + 4 :]) == ["verlwatch", "status", "--quiet"]


def test_it_starts_the_program_with_the_configuration_of_the_host() -> None:
    assert json.loads(value("ENTRYPOINT")) == ["verlwatch"]
    assert json.loads(value("CMD")) == ["run", "--config", "/etc/verlwatch/verlwatch.yaml"]
    assert value("ENV").startswith(f"PATH={PROGRAM.rpartition('/')[0]}:")


def test_the_state_directory_is_a_volume_of_the_users_own() -> None:
    (folder,) = re.findall(rf"{variable('state_dir')}=(\S+)", value("ENV"))
    assert OVERRIDES["state_dir"] == ("state_dir",)
    assert value("VOLUME") == folder
    (install,) = (json.loads(rest) for word, rest in last_stage() if word == "RUN")
    assert install == ["install", "-d", "-o", "65532", "-g", "65532", "-m", "0700", folder]
    assert value("USER") == "65532:65532"


def test_the_port_is_the_default_one() -> None:
    listen = Config().http.listen
    assert listen is not None
    assert int(value("EXPOSE")) == listen.port


def test_python_is_one_the_project_supports() -> None:
    versions = {rest.split()[0] for word, rest in instructions() if word == "FROM"}
    assert versions == {"python:3.13-slim"}
    assert "Programming Language :: Python :: 3.13" in (ROOT / "pyproject.toml").read_text()
