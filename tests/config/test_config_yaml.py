"""YAML is read as the text the user wrote, with a place for everything, and cannot be used to harm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verlwatch.config import Config, ConfigError, Problem, load
from verlwatch.config._yaml import read

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Loads = Callable[[str | bytes], Config]
    Complains = Callable[[str | bytes], list[str]]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "null\n", "\ufeff", "{}"])
def test_an_empty_file_is_the_default_configuration(text: str, loads: Loads) -> None:
    assert loads(text) == Config()


def test_a_section_whose_lines_are_all_commented_out_keeps_its_defaults(loads: Loads) -> None:
    assert loads("http:\n#  listen: off\nlogging: ~\nruns:\nexternal_url: null\n") == Config()


@pytest.mark.parametrize("name", ["no", "off", "yes", "on", "true", "22:22", "1e-3", "010", "0x1F", "1_000", ".inf"])
def test_a_word_that_yaml_would_turn_into_something_else_stays_as_written(name: str, loads: Loads) -> None:
    assert loads(f"runs: [{{name: {name}, logs: [/x]}}]").runs[0].name == name


def test_a_date_a_time_and_a_version_stay_as_written(loads: Loads) -> None:
    config = loads("runs: [{name: 2024-01-01, logs: [/a]}, {name: 1.10, logs: [/b]}, {name: '~', logs: [/c]}]")
    assert [run.name for run in config.runs] == ["2024-01-01", "1.10", "~"]


def test_off_turns_the_server_off_though_yaml_calls_it_false(loads: Loads) -> None:
    assert loads("http: {listen: off}").http.listen is None


def test_anchors_and_aliases_work(loads: Loads) -> None:
    config = loads("runs:\n- {name: a, logs: &logs [/x]}\n- {name: b, logs: [/y]}\nexternal_url: &u https://h\n")
    assert config.runs[0].logs == ("/x",)
    assert loads("storage: {keep_steps: &d 2d}\ndelivery: {max_backoff: 1h}").storage.keep_steps == 172_800
    assert loads("reading: {poll_interval: &t 1s}\ndelivery: {grace: *t}").delivery.grace == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("runs: []\nhttp:\n\tlisten: off\n", ["3:1: a tab cannot indent YAML; use spaces"]),
        ("a: 1\n--- \nb: 2\n", ["2:1: a second YAML document begins; keep one per file (remove the --- line)"]),
        ("http: {}\nruns: []\nhttp: {}\n", ["3:1: http: occurs twice (first in line 1); keep one"]),
        ("http: {listen: off, listen: off}", ["1:21: http.listen: occurs twice (first in line 1); keep one"]),
        ("[a]: b\n", ["1:1: a key must be a word, not a list or a mapping"]),
        ("- a\n", ["1:1: must be a mapping; write it as key: value lines"]),
        ("just words\n", ["1:1: must be a mapping; write it as key: value lines"]),
        (
            "reading: {max_files: !!int 5}",
            ["1:22: reading.max_files: has the tag tag:yaml.org,2002:int; write the value without a tag"],
        ),
        (b"http:\n  listen: \xff\n", ["2:11: is no UTF-8 text here; save the file as UTF-8"]),
        ("http:\n  listen: \x00\n", ["2:11: has the control character U+0000; remove it"]),
    ],
)
def test_a_fault_of_the_yaml_is_told_with_its_place(
    text: str | bytes, expected: list[str], complains: Complains
) -> None:
    assert complains(text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("runs: [\n", "2:1: "),
        ("http: {listen: off\nlogging: {}\n", "2:8: "),
        ("a: b: c\n", "1:5: "),
        ('a: "b\n', "2:1: "),
        ("a: *nobody\n", "1:4: "),
        ("a: @b\n", "1:4: "),
        ("http:\n  listen: off\n grace: 1\n", "3:2: "),
    ],
)
def test_a_syntax_error_names_line_and_column_and_what_to_look_at(text: str, place: str, complains: Complains) -> None:
    (line,) = complains(text)
    assert line.startswith(f"{place}is no valid YAML: ")
    assert line.endswith("; check indentation, quotes and colons here and in the line above")


def test_a_python_tag_constructs_nothing(complains: Complains, tmp_path: Path) -> None:
    (line,) = complains(f"state_dir: !!python/object/apply:os.mkdir ['{tmp_path}/made']")[:1]
    assert line.startswith("1:12: state_dir: has the tag tag:yaml.org,2002:python/object/apply:os.mkdir;")
    assert not (tmp_path / "made").exists()


def test_aliases_that_multiply_are_stopped(complains: Complains) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (line,) = complains("\n".join(levels))
    assert line.endswith("over 50000 values up to here; use fewer aliases (*name)")


def test_an_alias_within_itself_is_stopped(complains: Complains) -> None:
    assert complains("runs: &a\n  - *a\n") == ["1:7: holds itself through an alias (*name); write the value out"]


def test_deep_nesting_is_stopped(complains: Complains) -> None:
    (line,) = complains("runs: " + "[" * 100_000)
    assert line.startswith("1:25: is no valid YAML: nested over 20 levels deep;")


def test_a_file_over_one_mebibyte_is_refused(config_file: Path) -> None:
    config_file.write_bytes(b"#" * (1 << 20))
    assert load(config_file) == Config()
    config_file.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ConfigError, match="is over 1 MiB; is this really a configuration\\?"):
        load(config_file)


def test_a_missing_file_a_folder_and_a_fifo_are_named(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, reason in [
        (tmp_path / "none.yaml", "no such file or directory; give a readable YAML file"),
        (tmp_path, "is a directory; give a readable YAML file"),
        (fifo, "is no regular file; give a readable YAML file"),
    ]:
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert str(caught.value) == f"{path}: {reason}"


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#,? \n\t%@`~0", max_size=60))
def test_whatever_is_in_the_file_the_answer_is_a_configuration_or_its_problems(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    file.write_text(text)
    try:
        answer: Config | tuple[Problem, ...] = load(file)
    except ConfigError as error:
        answer = error.problems
    assert answer == Config() or (isinstance(answer, tuple) and answer and all(problem.text for problem in answer))


def test_places_are_those_of_the_values(config_file: Path) -> None:
    config_file.write_text("http:\n  listen: off\nruns:\n  - name: a\n")
    document = read(config_file)
    assert (document.locate(("http", "listen")).line, document.locate(("http", "listen")).column) == (2, 11)
    assert (document.locate(("http", "listen"), key=True).column) == 3
    assert (document.locate(("runs", 0, "logs")).line, document.locate(("runs", 0, "logs")).column) == (4, 5)
