"""An agent and a hub that know each other by certificates, as processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.daemon.conftest import Starter
from tests.daemon.harness import Daemon, projection
from tests.fakes.certificates import Authority


def secret(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


async def test_a_run_arrives_over_tls_with_certificates_on_both_sides(
    recorded: Path, tmp_path: Path, start: Starter
) -> None:
    authority = Authority(tmp_path, "authority")
    hub_pair, agent_pair = authority.issue("hub"), authority.issue("agent")
    ca = authority.certificate
    log = tmp_path / "train.log"
    log.write_bytes((recorded / "verl-0.3.0.post1.driver.log").read_bytes())
    token = secret(tmp_path / "token", "of-n1")
    config = tmp_path / "hub.yaml"
    config.write_text(
        f"http: {{tls_certificate: {hub_pair.certificate}, tls_key: {hub_pair.key}, client_ca: {ca}}}\n"
        f"hub: {{agents: [{{name: n1, token_file: {token}}}]}}\n"
    )
    hub = await start("--config", config, "--state-dir", tmp_path / "hub")
    port = (await hub.said("https://")).partition("https://127.0.0.1:")[2].partition("/")[0]
    agents = []
    for name, more in (
        ("stranger", ""),
        ("n1", f", certificate: {agent_pair.certificate}, key: {agent_pair.key}"),
    ):
        yaml = tmp_path / f"{name}.yaml"
        yaml.write_text(
            f"agent: {{hub: 'https://localhost:{port}', name: n1, token_file: {token}, ca: {ca}{more}}}\n"
            f"runs: [{{name: qwen, logs: ['{log}'], from: beginning}}]\n"
        )
        agents.append(await start("--config", yaml, "--state-dir", tmp_path / name, command="agent"))
    stranger, agent = agents
    await agent.until(lambda s: s["sources"][0]["position"] == log.stat().st_size and not s["receivers"][0]["pending"])
    status = await stranger.until(lambda s: s["receivers"][0]["last_error"])
    assert status["receivers"][0]["delivered"] == 0
    for daemon in (*agents, hub):
        assert await daemon.stop() == 0
    assert [step for _, _, step, _ in projection(tmp_path / "hub")["steps"]] == list(range(301))


@pytest.mark.parametrize("what", ["locked", "absent"])
async def test_a_key_that_cannot_be_used_ends_the_start_with_its_name(
    tmp_path: Path, start: Starter, what: str
) -> None:
    pair = Authority(tmp_path, "authority").issue("locked", password="open sesame")
    config = tmp_path / "hub.yaml"
    key = pair.key if what == "locked" else str(tmp_path / "absent.key")
    config.write_text(
        f"http: {{tls_certificate: {pair.certificate}, tls_key: {key}}}\n"
        f"hub: {{agents: [{{name: n1, token_file: {secret(tmp_path / 'token', 'x')}}}]}}\n"
    )
    with pytest.raises(AssertionError, match=key) as ended:
        await Daemon.start("--config", config, "--state-dir", tmp_path / "hub")
    assert "Traceback" not in str(ended.value)
    assert "sesame" not in str(ended.value)
