"""The configuration as a run prints it, as Hydra writes it, and as a shell shows it."""

from __future__ import annotations

import pprint
import random
import shlex
import tracemalloc
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import orjson
import pytest
import yaml

from verlwatch.core.lines import Line, Take, config_dump, hydra_config, hydra_overrides
from verlwatch.core.lines._config import KEYS, attributes, flat
from verlwatch.core.types import Event, Record

Read = Callable[..., list[Record]]
TEXTS = (
    *("vllm", "", "true", "12", "1e-6", "a b " * 40, "it's", 'say "x"', "both ' and \"", "C:\\new\\table", "tab\there"),
    *("two\nlines", "naïve 雪", "{'a': 1}", "[x]", "key: value", "- item", "# no comment", "~/data", "null", "nan inf"),
    *("- ", ":", "a:", "'", '"', "\\", "step:1 - a/b:1"),
)
NAMES = ("actor", "model", "optim", "n", "path", "name", "lr", "size", "kwargs", "y", "on")
VALUES: tuple[Any, ...] = (
    *(0, 1, -1, 10**12, 0.5, 1e-06, -2.5e20, True, False, None),
    *([], [1, 2], ["a", "it's"], [0.9, None], {}),
)


def tree(rnd: random.Random, depth: int = 3) -> dict[str, Any]:
    names = rnd.sample(NAMES, rnd.randint(1, 5))
    return {
        name: tree(rnd, depth - 1) if depth and rnd.random() < 0.4 else deepcopy(rnd.choice((*VALUES, *TEXTS)))
        for name in names
    }


def config(seed: int) -> dict[str, Any]:
    rnd = random.Random(seed)
    return {"actor_rollout_ref": {"actor": tree(rnd)}, "trainer": {"nnodes": 2, **tree(rnd)}}


def expected(config: Mapping[str, Any]) -> dict[str, Any]:
    """Written down another way than the code does."""
    told = {}
    for key, value in flat(config):
        if isinstance(value, bool):
            told[key] = str(value).lower()
        elif isinstance(value, list):
            told[key] = orjson.dumps(value).decode()
        elif isinstance(value, str):
            told[key] = value[:300]
        elif value is not None:
            told[key] = value
    return told


def only(records: list[Record]) -> Event:
    (record,) = records
    assert isinstance(record, Event)
    return record


@pytest.mark.parametrize("seed", range(60))
def test_a_pretty_printed_configuration_is_read_as_it_was(seed: int, read: Read) -> None:
    rows = pprint.pformat(config(seed)).splitlines()
    data = "".join(f"(TaskRunner pid=7) {row}\n" for row in rows).encode()
    assert only(read(data, kinds=(config_dump,))).attributes == expected(config(seed))


@pytest.mark.parametrize("seed", range(60))
def test_a_configuration_that_hydra_writes_is_read_as_it_was(seed: int, read: Read) -> None:
    text = yaml.dump(config(seed), default_flow_style=False, allow_unicode=True, sort_keys=False)
    told = only(read(text.encode(), kinds=(hydra_config,))).attributes
    wanted = expected(config(seed))
    for key, value in wanted.items():
        if "\n" in str(value) or (isinstance(value, str) and value != value.strip()):
            told = {**told, key: value}  # folded texts lose line ends and blanks, no more
    assert told == wanted


@pytest.mark.parametrize("value", [text for text in TEXTS if "\n" not in text])
def test_an_override_is_unquoted_as_a_shell_would(value: str, read: Read) -> None:
    command = shlex.join(["python3", "-m", "verl.trainer.main_ppo", f"data.text={value}", "trainer.nnodes=2"])
    command = command.replace("'\"'\"'", "'\\''")  # bash shows a quote so
    assert only(read(f"+ {command}\n".encode(), kinds=(hydra_overrides,))).attributes == {
        "data.text": value[:300],
        "trainer.nnodes": "2",
    }


def test_the_last_override_of_a_cut_line_is_unknown(read: Read) -> None:
    command = b"+ python3 -m verl.trainer.main_ppo trainer.nnodes=2 trainer.n_gpus_per_node=1"
    assert only(read(command, kinds=(hydra_overrides,))).attributes == {"trainer.nnodes": "2"}


def test_what_is_secret_is_left_out() -> None:
    told = attributes(
        [
            ("a.hf_token", "x"),
            ("a.WANDB_API_KEY", "x"),
            ("a.password", 1234),
            ("a.client_secret", "x"),
            ("a.url", "http://user:word@host/"),
            ("a.list", [{"api_key": "x"}]),
            ("a.tokens", ["x"]),
            ("a.max_tokens", 512),
            ("a.ppo_max_token_len_per_gpu", "16384"),
            ("a.tokenizer_path", "/models/x"),
            ("a.tokenization_sanity_check_mode", "strict"),
        ]
    )
    assert set(told) == {
        "a.max_tokens",
        "a.ppo_max_token_len_per_gpu",
        "a.tokenizer_path",
        "a.tokenization_sanity_check_mode",
    }


def test_no_secret_stands_in_the_excerpt(read: Read) -> None:
    data = (
        b"{'actor_rollout_ref': {'api_key': 'canary', 'n': 1}}\n"
        b"+ python3 -m verl.trainer.main_ppo a.api_key=canary trainer.nnodes=2\n"
    )
    records = read(data, kinds=(config_dump, hydra_overrides))
    assert len(records) == 2
    assert "canary" not in repr(records)


def test_what_no_json_or_text_holds_is_left_out() -> None:
    values = [("a", 1 << 63), ("b", float("inf")), ("c", float("nan")), ("d", "\ud800"), ("e", ["\ud800"]), ("f", {1})]
    assert attributes(values) == {}


def test_too_many_keys_leave_the_deepest_out() -> None:
    deep = {"actor_rollout_ref": {"actor": {f"k{i}": {"deep": i} for i in range(KEYS)}}, "trainer": {"nnodes": 2}}
    told = attributes(flat(deep))
    assert len(told) == KEYS
    assert next(iter(told)) == "trainer.nnodes"


@pytest.mark.parametrize("lost", range(1, 30, 3))
def test_a_dump_that_has_lost_its_end_tells_nothing(lost: int, read: Read) -> None:
    rows = pprint.pformat({"actor_rollout_ref": {f"k{i}": "a text of some length" for i in range(30)}}).splitlines()
    data = "".join(f"(TaskRunner pid=7) {row}\n" for row in rows[:-lost]).encode()
    step = b"(TaskRunner pid=7) Total training steps: 7\n"
    assert [record.origin.kind for record in read(data + step)] == ["plan"]


@pytest.mark.parametrize("part", ["[1]", "()", "{", "1 ", "'a' ", "-1", "'", "\\'", "1,", "- ", "1if 2", "'\\d'", "0x"])
def test_brackets_and_quotes_without_end_are_harmless(part: str, read: Read) -> None:
    head = b"{'actor_rollout_ref': {'a': 1, 'b': "
    data = head + b"\n " + part.encode() * 20_000 + b"\n }}\n"
    assert [record.origin.kind for record in read(data, kinds=(config_dump,))] in ([], ["config_dump"])


def test_yaml_with_one_known_section_is_no_configuration(read: Read) -> None:
    assert read(b"data:\n  seed: 1\nother:\n  a: 2\n") == []


def test_an_anchored_list_is_nobody_elses(read: Read) -> None:
    text = b"data:\n  x:\n    a: &id001\n    - 1\n    b: *id001\ntrainer:\n  nnodes: 2\n"
    assert only(read(text)).attributes == {"trainer.nnodes": 2}


def test_infinity_is_no_reason_to_lose_the_rest(read: Read) -> None:
    data = b"{'actor_rollout_ref': {'a': inf, 'b': -inf, 'c': nan, 'd': 1, 'e': 'nan inf'}}\n"
    assert only(read(data)).attributes == {"actor_rollout_ref.d": 1, "actor_rollout_ref.e": "nan inf"}


@pytest.mark.parametrize("rows", [1, 400])
def test_a_value_that_would_fill_the_memory_is_not_made(rows: int, read: Read) -> None:
    row = b"{'actor_rollout_ref': {'a': [1" + b",1" * (300_000 // rows)
    data = row + (b",\n " + b"1,1," * (150_000 // rows)) * rows + b"1]}}\n"
    tracemalloc.start()
    try:
        assert read(data, kinds=(config_dump,)) == []
        assert tracemalloc.get_traced_memory()[1] < 15_000_000
    finally:
        tracemalloc.stop()


def test_a_word_that_looks_like_a_section_holds_no_lines(read: Read) -> None:
    assert hydra_config.Config("data:").take(Line("data:"), None) is Take.ENDED
    assert hydra_config.Config("data:").take(Line("  seed: 1"), None) is Take.TAKEN
    text = b"data:\ndata:\ntrainer:\n  nnodes: 2\ndata:\n  seed: 1\ntrainer:\n  nnodes: 3\n"
    assert only(read(text)).attributes == {"data.seed": 1, "trainer.nnodes": 3}
