"""docs/FLEET.md says what is so: every field of the wire format, and commands that work."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
from pathlib import Path

import orjson
import pytest

from tests.daemon.conftest import Starter
from verlwatch.shell.fleet import hub, wire

TEXT = (Path(__file__).parents[2] / "docs" / "FLEET.md").read_text()
FORMS = {
    "delivery": wire.Delivery,
    "source": wire.SourceReport,
    "shipment": wire.Shipment,
    "extract": wire._Extract,
    "record": wire._Record,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_field_is_named_in_its_table_and_no_other(name: str) -> None:
    (table,) = re.findall(rf"^\| {name} \| type \|.*\n\|---.*\n((?:\|.*\n)+)", TEXT, flags=re.MULTILINE)
    assert re.findall(r"^\| `(\w+)`", table, flags=re.MULTILINE) == sorted(
        FORMS[name].__annotations__, key=lambda field: table.find(f"| `{field}`")
    )


def test_bounds_and_path_are_those_of_the_hub() -> None:
    for number in (wire.MOST_SOURCES, wire.MOST_SHIPMENTS, wire.MOST_RECORDS, wire.MOST_VALUES, wire.MOST_ATTRIBUTES):
        assert f"up to {number:,} " in TEXT
    assert f"POST {hub.PATH}\n" in TEXT
    assert f"{hub.BODY_BYTES / 2**20:g} MiB" in TEXT
    assert f"within {hub.BODY_S:g} s" in TEXT


def test_every_answer_is_explained() -> None:
    source = Path(hub.__file__).read_text()
    answers = set(re.findall(r"(?:_answer|_later|_refuse)\((?:\s*agent,)?\s*(\d{3})", source))
    assert len(answers) >= 9
    assert answers == set(re.findall(r"^\| (\d{3}) \|", TEXT, flags=re.MULTILINE))


def test_the_example_is_a_delivery() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", TEXT, flags=re.DOTALL)
    (shipment,) = wire.unpack(orjson.dumps(json.loads(example)))["shipments"]
    (extract,) = wire.extracts_of(shipment, "n1")
    assert len(extract.records) == 1


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")
async def test_certificates_made_as_told_let_an_agent_reach_its_hub(
    tmp_path: Path, start: Starter, recorded: Path
) -> None:
    commands = re.findall(r"^    ((?:openssl|printf|\(umask) .*)", TEXT, flags=re.MULTILINE)
    script = "\n".join(["set -e", "umask 077", *commands]).replace("hub.example.org", "localhost")
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    (tmp_path / "hub.yaml").write_text(
        f"http: {{listen: 'localhost:{port}', tls_certificate: {tmp_path}/hub.pem, tls_key: {tmp_path}/hub.key,"
        f" client_ca: {tmp_path}/ca.pem}}\nhub: {{agents: [{{name: n1, token_file: {tmp_path}/n1.token}}]}}\n"
    )
    await start(
        "--config", tmp_path / "hub.yaml", "--state-dir", tmp_path / "hub", "--http-listen", f"localhost:{port}"
    )
    agent = await start(
        "--hub", f"https://localhost:{port}", "--token-file", tmp_path / "n1.token", "--name", "n1",
        "--ca", tmp_path / "ca.pem", "--agent-certificate", tmp_path / "n1.pem", "--agent-key", tmp_path / "n1.key",
        "--log", recorded / "verl-0.3.0.post1.driver.log", "--state-dir", tmp_path / "n1", command="agent",
    )  # fmt: skip
    status = await agent.until(lambda s: s["receivers"][0]["delivered"] > 0 and not s["receivers"][0]["pending"])
    assert status["receivers"][0]["last_error"] is None
