"""YAML as text: every scalar stays what the user wrote, and every value knows its line and column.

YAML 1.1 reads ``no`` as false, ``22:22`` as 1342 and ``1e-3`` as a text.  Here only mappings, lists and texts exist
(an empty value, ``~`` or ``null`` is None), and the field that takes the text says how it is read.  That leaves
nothing to guess.  Not YAML's usual reading, so ``load`` is not a general loader.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from verlwatch.config._problems import ConfigError, KeyPath, Place, Problem, problem
from verlwatch.fields import read_regular
from verlwatch.shell.printable import shortened

SIZE_LIMIT = 1 << 20
_DEPTH_LIMIT = 20
_NODE_LIMIT = 50_000
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_PLAIN_TAGS = frozenset({"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"})


@dataclass(slots=True)
class Document:
    """A YAML file: ``value`` is made of dict, list, str and None; ``problems`` is what the YAML itself has wrong."""

    file: str
    value: Any = None
    places: dict[KeyPath, Place] = field(default_factory=dict)
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def locate(self, path: KeyPath, *, key: bool = False) -> Place:
        """Where the value at ``path`` begins (or its key), or the nearest thing around it that the file does hold."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, Place(self.file, 1, 1))


def read(path: Path) -> Document:
    """The file's content.  Raises ConfigError if it cannot be read or is no YAML; lesser faults are in ``problems``."""
    file = str(path)
    node = _compose(_decoded(_bytes(path), file), file)
    document = Document(file)
    if node is not None:
        _Reading(document).take(node, ())
    return document


def _fatal(place: Place, text: str) -> ConfigError:
    return ConfigError([problem(place, (), text)])


def _bytes(path: Path) -> bytes:
    place = Place(str(path))
    try:
        data = read_regular(path, SIZE_LIMIT)
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise _fatal(place, f"{reason}; give a readable YAML file") from None
    if len(data) > SIZE_LIMIT:
        raise _fatal(place, "is over 1 MiB; is this really a configuration?")
    return data


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", "replace")
        raise _fatal(_place_behind(before, file), "is no UTF-8 text here; save the file as UTF-8") from None


def _place_behind(text: str, file: str) -> Place:
    return Place(file, text.count("\n") + 1, len(text) - text.rfind("\n"))


class _Loader(yaml.BaseLoader):
    """Composes nodes only; nothing of it constructs objects."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        if parent and self.depth > _DEPTH_LIMIT:
            problem = f"nested over {_DEPTH_LIMIT} levels deep"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=parent.start_mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str, file: str) -> yaml.Node | None:
    try:
        loader = _Loader(text)
        return loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        raise _fatal(place, _syntax(error)) from None
    except yaml.reader.ReaderError as error:
        place = _place_behind(text[: error.position], file)
        raise _fatal(place, f"has the control character U+{ord(text[error.position]):04X}; remove it") from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    reason = " ".join(part for part in (error.context, error.problem) if part)
    if "'\\t'" in reason:
        return "a tab cannot indent YAML; use spaces"
    if "single document" in reason:
        return "a second YAML document begins; keep one per file (remove the --- line)"
    return f"is no valid YAML: {shortened(reason)}; check indentation, quotes and colons here and in the line above"


@dataclass(slots=True)
class _Reading:
    """One walk over the nodes.  Aliases are walked as often as they are used, so nodes are counted, not lines."""

    document: Document
    nodes: int = 0

    def take(self, node: yaml.Node, path: KeyPath) -> None:
        self.document.value = self._value(node, path)

    def _value(self, node: yaml.Node, path: KeyPath) -> Any:
        place = self._place(node)
        self.nodes += 1
        if self.nodes > _NODE_LIMIT:
            raise _fatal(place, f"over {_NODE_LIMIT} values up to here; use fewer aliases (*name)")
        if len(path) > _DEPTH_LIMIT:
            raise _fatal(place, "holds itself through an alias (*name); write the value out")
        self.document.places[path] = place
        if node.tag not in _PLAIN_TAGS:
            self._fault(place, path, f"has the tag {shortened(node.tag, 60)}; write the value without a tag")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*path, index)) for index, child in enumerate(node.value)]
        return None if isinstance(node, yaml.ScalarNode) and not node.style and node.value in _NULLS else node.value

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, child in node.value:
            place = self._place(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                self._fault(place, path, "a key must be a word, not a list or a mapping")
                continue
            key = key_node.value
            inner = (*path, key)
            if key in result:
                first = self.document.keys[inner].line
                self._fault(place, inner, f"occurs twice (first in line {first}); keep one")
                continue
            self.document.keys[inner] = place
            result[key] = self._value(child, inner)
        return result

    def _place(self, node: yaml.Node) -> Place:
        return Place(self.document.file, node.start_mark.line + 1, node.start_mark.column + 1)

    def _fault(self, place: Place, path: KeyPath, text: str) -> None:
        self.document.problems.append(problem(place, path, text))
