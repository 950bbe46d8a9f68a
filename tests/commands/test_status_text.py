"""What `verlwatch status` prints of a hub and of an agent."""

from __future__ import annotations

from dataclasses import replace

from tests.shell.http.fake import NOW, hub_status, status
from verlwatch.commands.status import render
from verlwatch.status import AgentStatus, ReceiverStatus, SilenceStatus, Status


def test_a_hub_names_its_agents_and_the_silent_ones_first() -> None:
    text = render(hub_status())
    assert text.startswith("verlwatch 0.1.0, hub: NOT READY\n")
    assert text[text.index("\nagents\n") : text.index("\nsources")] == (
        "\nagents\n"
        "  node2: SILENT, heard 754 s ago, version 0.2.0, clock -90.4 s, lag 312 s, 1204 waiting, 9 sources\n"
        "    ! 5 cannot be read: /data/run7/worker-0.log, /data/run7/worker-1.log, /data/run7/worker-2.log and 2 more\n"
        "    40 samples thinned, 3 shipments lost, 0 repeated, 1 requests refused\n"
        "  node3: SILENT, not heard since the start\n"
        "  node1: heard 4 s ago, version 0.1.0, clock +0.2 s, lag 0 s, 0 waiting, 4 sources\n"
        "    0 samples thinned, 0 shipments lost, 2 repeated, 0 requests refused\n"
        "  6 requests with a token that is nobody's, or another agent's\n"
    )


def test_a_clock_that_agrees_is_no_less_than_zero() -> None:
    agent = AgentStatus(name="n", version="1", seen_at=NOW, skew_s=-0.001)
    assert "clock +0.0 s" in render(replace(hub_status(), agents=(agent,)))


def test_whoever_has_no_agents_prints_none() -> None:
    assert render(status()).startswith("verlwatch 0.1.0, standalone: NOT READY\n")
    assert "agents" not in render(status())


def test_an_agent_says_that_it_is_one_and_how_its_hub_takes_what_it_reads() -> None:
    hub = ReceiverStatus(name="hub", type="hub", pending=3, delivered=9, last_error="the hub answered 401")
    text = render(Status(version="1", started_at=NOW, now=NOW, ready=True, role="agent", receivers=(hub,)))
    assert text.startswith("verlwatch 1, agent: ready\n")
    assert "receiver hub (hub): 9 delivered, 3 waiting, 0 given up\n  last error: the hub answered 401" in text


def test_silences_in_force_are_shown() -> None:
    one = SilenceStatus(
        id="s1", run="prod-*", rule="*", phase="gen", host="*", rank="*", starts_at=NOW, ends_at=None,
        comment="known", author="ada",
    )  # fmt: skip
    assert "\nsilences\n  s1  run prod-*, phase gen  until the runs end, by ada: known" in render(
        replace(status(), silences=(one,))
    )


def test_a_long_name_of_a_file_is_cut() -> None:
    agent = AgentStatus(name="n", seen_at=NOW, unreadable=("/" + "x" * 4000,))
    assert f"    ! 1 cannot be read: /{'x' * 78}…\n" in render(replace(hub_status(), agents=(agent,)))
