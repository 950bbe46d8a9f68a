"""Agents and hubs: what must be said before anything crosses a network."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from verlwatch.config import Config

Loads = Callable[[str | bytes], Config]
Complains = Callable[[str | bytes], list[str]]
AGENTS = "hub: {agents: [{name: n1, token_file: /t1}]}\n"
TOKEN = "http: {token_file: /t, listen: '0.0.0.0:9878'%s}\n"


def test_an_agent_needs_a_hub_and_a_token(loads: Loads) -> None:
    config = loads("agent: {hub: 'https://hub:9878', token_file: /t}")
    assert (config.agent.hub, config.agent.token_file, config.agent.name) == ("https://hub:9878", "/t", None)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("agent: {hub: 'https://hub'}", "agent.token_file: is needed with agent.hub"),
        ("agent: {hub: 'http://hub', token_file: /t}", "agent.hub: is not encrypted; use https://"),
        ("agent: {hub: hub, token_file: /t}", "agent.hub: must "),
        ("agent: {name: 'a:b'}", "agent.name: must be 1 to 100 printable characters without a colon"),
        (AGENTS + TOKEN % "", "hub: would take deliveries from other hosts unencrypted; set http.tls_certificate"),
        (AGENTS + "http: {listen: off}", "hub: takes deliveries at http.listen, which is off"),
        (AGENTS + "agent: {hub: 'https://h', token_file: /t}", "hub: is set, and agent.hub too"),
        ("hub: {agents: [{name: n1}]}", "hub.agents[0].token_file: "),
        ("hub: {agents: [{name: n1, token_file: /t, nick: x}]}", "hub.agents[0].nick: unknown key"),
        ("hub: {agents: [{name: n, token_file: /t}, {name: n, token_file: /u}]}", "hub.agents[1].name: n is already"),
        ("http: {tls_certificate: /c}", "http.tls_certificate: needs its key; set http.tls_key"),
        ("http: {client_ca: /c}", "http.client_ca: needs TLS; set http.tls_certificate and http.tls_key"),
    ],
)
def test_what_is_unsafe_or_contradicts_itself_is_refused(text: str, complaint: str, complains: Complains) -> None:
    assert [line.partition(": ")[2].startswith(complaint) for line in complains(text)] == [True]


@pytest.mark.parametrize(
    "text",
    [
        AGENTS,
        AGENTS + TOKEN % ", tls_certificate: /c, tls_key: /k",
        AGENTS.replace("{agents", "{plain_http: allowed, agents") + TOKEN % "",
        "agent: {hub: 'http://127.0.0.1:1', token_file: /t}",
        "agent: {hub: 'http://[::1]:1', token_file: /t}",
        "agent: {hub: 'http://hub', token_file: /t, plain_http: allowed}",
    ],
)
def test_what_is_safe_or_said_in_so_many_words_is_taken(text: str, loads: Loads) -> None:
    assert loads(text)
