"""What is secret in a line stands in no record, and what is none stays."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from verlwatch.core.lines import Line, child_failed, config_dump, exception, host_oom, hydra_overrides
from verlwatch.core.lines._config import attributes
from verlwatch.core.lines._line import known
from verlwatch.core.lines._secrets import LOOKED_AT, blanked
from verlwatch.core.types import Event, Record

Read = Callable[..., list[Record]]
C = "canary7Canary8canary9"


@pytest.mark.parametrize(
    "text",
    [
        f"--api-key={C}",
        f"serve --api-key {C} --port 80",
        f"serve --hf-token '{C}' x",
        f"WANDB_API_KEY={C} python3",
        f"OPENAI_KEY={C} python3",
        f"KEY={C}",
        f"AWS_SECRET_ACCESS_KEY={C}",
        f"MY_PAT={C}",
        f"password: {C}",
        "password=1234canary",
        f"https://user:{C}@host/x",
        f"postgresql://user:{C}@host/x",
        f"redis://:{C}@host",
        f"Authorization: Bearer {C}",
        f"{{'Authorization': 'Basic {C}='}}",
        f"Cookie: sid={C}; b=canary",
        f"Incorrect API key provided: sk-{C}.",
        f"using hf_{C}",
        f"ghp_{C}",
        f"github_pat_{C}",
        f"xoxb-12-{C}",
        f"https://hooks.slack.com/services/T0/B0/{C}",
        f"https://store/x?sv=1&sig={C}&x=2",
        f"https://host/x?token={C}",
        f"https://s3/x?X-Amz-Signature={C}",
        f'{{"env_vars":{{"WANDB_API_KEY":"{C}"}}}}',
        f'\\"WANDB_API_KEY\\":\\"{C}\\"',
        f"{{env_vars:{{WANDB_API_KEY:{C}}}}}",
        f"{{'token': '{C}'}}",
        f"AccountKey={C};x",
    ],
)
def test_a_secret_is_blanked(text: str) -> None:
    assert "canary" not in blanked(text).lower()
    assert "***" in blanked(text)
    assert attributes([("a.b", text), ("a.list", [text]), ("a.deep", [{"x": text}])]) == {}


@pytest.mark.parametrize(
    "text",
    [
        "This model's maximum context length is 4096 tokens: you asked for 5000",
        "max_tokens=512, token: 3, tokenizer=/models/x",
        "KeyError: 'token'",
        "the step passes, pass@1 of 0.5, path: /a/b",
        "AssertionError: prompt_key=prompt is missing in data.reward_fn_key",
        "ray::WorkerDict.update_actor",
        "https://github.com/volcengine/verl/issues/1",
        "token-mean",
        "use_auth=True",
        "pass=1.5",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert blanked(text) == text
    assert attributes([("a.b", text)]) == {"a.b": text}


@pytest.mark.parametrize(
    "key",
    [
        *("secrets.openai", "api_keys.openai", "credentials.value", "headers.Authorization", "a.api-key", "a.apiKey"),
        *("a.access_key", "a.aws_access_key_id", "a.auth", "a.bearer", "a.hf_key", "a.pwd", "a.pass", "a.passphrase"),
        *("a.cookie", "a.session", "a.dsn", "a.pat", "a.otp", "a.connection_string", "a.signature", "a.sig", "a.sas"),
        *("a.account_key", "a.ssh_key", "a.signing_key", "a.encryption_key", "a.authToken", "tokens.hub"),
    ],
)
def test_any_part_of_a_key_may_say_that_its_value_is_secret(key: str) -> None:
    assert attributes([(key, "plain")]) == {}
    outer, _, inner = key.partition(".")
    assert attributes([("list", [{outer: {inner: "plain"}}])]) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("data.prompt_key", "prompt"),
        ("data.reward_fn_key", "data_source"),
        ("actor.loss_agg_mode", "token-mean"),
        ("rollout.session_timeout", 30),
        ("trainer.author", "me"),
        ("rollout.path", "/a"),
        ("rollout.max_tokens", "512"),
        ("actor.shuffle_pattern", "block"),
    ],
)
def test_a_key_that_only_looks_alike_is_told(key: str, value: str | int) -> None:
    assert attributes([(key, value)]) == {key: value}


def test_no_secret_is_told_of_what_a_program_was_started_with(read: Read) -> None:
    data = (
        f"Error executing job with overrides: ['reward_model.api_key=sk-{C}', '+trainer.wandb_token={C}']\n"
        "Traceback (most recent call last):\n"
        f"ValueError: request to https://u:{C}@h with --token {C} failed\n"
        f'+ ray job submit --runtime-env-json \'{{"env_vars":{{"WANDB_API_KEY":"{C}"}}}}\' -- python3 -m '
        f"verl.trainer.main_ppo trainer.nnodes=2\n"
        f"+ /opt/bin/python3 --api-key {C} -m verl.trainer.main_ppo trainer.nnodes=2 a.tok='hf_{C}'\n"
        f"ERROR:x:failed (exitcode: 1) local_rank: 0 (pid: 7) of binary: /bin/python --api-key={C}\n"
    )
    records = read(data.encode(), kinds=(config_dump, hydra_overrides, exception, child_failed))
    assert {record.excerpt for record in records if isinstance(record, Event)} == {
        "Error executing job with overrides:",
        "+ ray -m verl.trainer.main_ppo",
        "+ python3 -m verl.trainer.main_ppo",
        "failed (exitcode: 1) local_rank: 0 (pid: 7)",
    }
    assert "canary" not in repr(records)


def test_no_secret_stands_in_an_excerpt(read: Read) -> None:
    (event,) = read(f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. token='{C}'\n".encode())
    assert isinstance(event, Event)
    assert event.excerpt.endswith("token=***")


def test_the_largest_command_is_told_without_its_secrets() -> None:
    report = host_oom.Report("Memory on the node (IP: 10.0.0.1, ID: ab) was 1.00GB / 2.00GB (0.500000)")
    report.take(Line("PID     MEM(GB) COMMAND"), None)
    report.take(Line(f"7    1.50   python3 -m serve --api-key={C}"), None)
    assert report.close().attributes["largest_command"] == "python3 -m serve --api-key=***"


def test_a_secret_that_the_end_of_a_text_cuts_is_blanked_as_well() -> None:
    text = known({"text": "x" * 290 + f" hf_{C}"})["text"]
    assert text == "x" * 290 + " ***"


@pytest.mark.parametrize(
    "part", ["-", "--", "key", "secret", "token=", "A_", "://", "a@", "'", '"', "\\", "sig=", "eyJ", ". ", "x", "1e"]
)
def test_looking_for_secrets_takes_no_longer_where_somebody_wants_it_to(part: str) -> None:
    begin = time.process_time()
    for text in (
        part * LOOKED_AT,
        f"key {part * LOOKED_AT}",
        f"--{part * LOOKED_AT}key",
        f"secret='{part * LOOKED_AT}",
    ):
        blanked(text)
    assert time.process_time() - begin < 0.4
