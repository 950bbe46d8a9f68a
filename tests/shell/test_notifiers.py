"""What holds for every notifier in the list, and how each of them looks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shell.notifier_messages import EMPTY, HUGE, MESSAGES
from verlwatch.fields import ReceiverConfig, SecretError
from verlwatch.shell.notifiers import (
    NOTIFIERS,
    Notifier,
    build,
    in_language,
    message_text,
    open_session,
    sample_message,
)

GOLDEN = Path(__file__).with_name("golden")


def check_golden(name: str, shown: str) -> None:
    """Compares with the file; with UPDATE_GOLDEN=1 writes it, for a person to look at the difference."""
    file = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(shown, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == shown


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


@pytest.fixture(params=NOTIFIERS, ids=lambda notifier: notifier.TYPE)
def notifier(request: pytest.FixtureRequest) -> type[Notifier]:
    kind: type[Notifier] = request.param
    return kind


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_looks_as_the_golden_file_says(notifier: type[Notifier], name: str) -> None:
    payload = notifier.render(MESSAGES[name], "7e57c0de-1")
    check_golden(f"{notifier.TYPE}_{name}.json", json.dumps(payload, indent=2, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_reads_as_text_as_the_golden_file_says(name: str) -> None:
    check_golden(f"text_{name}.txt", message_text(MESSAGES[name]) + "\n")


def test_a_message_in_chinese_looks_as_the_golden_file_says(notifier: type[Notifier]) -> None:
    payload = notifier.render(in_language(MESSAGES["escalated"], "zh"), "7e57c0de-1")
    check_golden(f"{notifier.TYPE}_chinese.json", json.dumps(payload, indent=2, ensure_ascii=False) + "\n")


def test_a_message_in_chinese_reads_as_text_as_the_golden_file_says() -> None:
    check_golden("text_chinese.txt", message_text(in_language(MESSAGES["escalated"], "zh")) + "\n")


def test_rendering_gives_the_same_for_the_same_message(notifier: type[Notifier]) -> None:
    assert notifier.render(MESSAGES["opened"], "k") == notifier.render(MESSAGES["opened"], "k")


@pytest.mark.parametrize("message", [*MESSAGES.values(), HUGE, EMPTY])
def test_no_text_steers_a_terminal_or_reorders_a_line(notifier: type[Notifier], message: Any) -> None:
    payload = notifier.render(message, "k")
    assert json.loads(json.dumps(payload, allow_nan=False)) == payload
    for text in [*texts(payload), message_text(message)]:
        assert all(character.isprintable() or character == "\n" for character in text), ascii(text)
        text.encode()


def test_the_idempotency_id_is_in_the_payload(notifier: type[Notifier]) -> None:
    assert any("7e57c0de-1" in text for text in texts(notifier.render(MESSAGES["opened"], "7e57c0de-1")))


@pytest.mark.parametrize("name", ["died", "started_again", "finished"])
def test_where_nothing_is_compared_no_ratio_is_shown(notifier: type[Notifier], name: str) -> None:
    shown = json.dumps(notifier.render(MESSAGES[name], "k"), ensure_ascii=False) + message_text(MESSAGES[name])
    assert not [word for word in ("×1.00", "0 s", "instead of", "last steps", "▁") if word in shown]
    assert '"values": []' not in shown


def test_a_run_that_has_finished_is_shown_as_good_news() -> None:
    shown = message_text(MESSAGES["finished"])
    assert shown.startswith("🏁 qwen2-7b-grpo: finished: step 400 of 400")
    assert "incident" not in shown


def test_the_sample_says_that_it_is_a_test(notifier: type[Notifier]) -> None:
    assert "TEST" in json.dumps(notifier.render(sample_message(), "k"))
    assert sample_message(5.0).at == 5.0


def test_each_notifier_has_a_type_of_its_own_and_a_config_that_takes_only_that() -> None:
    assert len({notifier.TYPE for notifier in NOTIFIERS}) == len(NOTIFIERS)
    for notifier in NOTIFIERS:
        assert issubclass(notifier.Config, ReceiverConfig)
        assert notifier.Config.model_json_schema()["properties"]["type"]["const"] == notifier.TYPE
        assert all(each.description for name, each in notifier.Config.model_fields.items() if name != "type")


REQUIRED = {"slack_bot": {"channel": "C024BE91L"}, "alertmanager": {"url": "http://127.0.0.1:9093"}}
"""What a configuration of this kind cannot be without, besides its secrets."""


def config_with_secrets(notifier: type[Notifier], files: dict[str, Path]) -> ReceiverConfig:
    return notifier.Config.model_validate(
        {"name": "x", "type": notifier.TYPE, **REQUIRED.get(notifier.TYPE, {}), **files}
    )


async def test_a_missing_secret_names_its_file_and_the_remedy(tmp_path: Path) -> None:
    async with open_session() as session:
        for notifier in NOTIFIERS:
            field = next(name for name in notifier.Config.model_fields if name.endswith("_file"))
            config = config_with_secrets(notifier, {field: str(tmp_path / "missing")})  # type: ignore[dict-item]
            with pytest.raises(SecretError, match=r"missing: no such file.*create it"):
                build(config, session)


def test_listing_the_notifiers_imports_no_http_client() -> None:
    program = "import sys, verlwatch.shell.notifiers; print({'aiohttp', 'slack_sdk'} & sys.modules.keys())"
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert shown.stdout == "set()\n"
