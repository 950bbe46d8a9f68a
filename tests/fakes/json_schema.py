"""As much of JSON Schema as verlwatch's own schema uses; a word it does not know is an error."""

from __future__ import annotations

from datetime import datetime
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
_KNOWN = {
    "$schema", "title", "description", "type", "required", "properties", "items", "const", "enum", "format",
}  # fmt: skip


def violations(value: Any, schema: dict[str, Any], at: str = "$") -> list[str]:
    """Where ``value`` is not what ``schema`` says; properties the schema does not name count as well."""
    unknown = schema.keys() - _KNOWN
    assert not unknown, f"teach me {unknown}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and (isinstance(value, bool) or not any(isinstance(value, _TYPES[kind]) for kind in kinds)):
        return [f"{at}: not {kinds}"]
    found = [f"{at}: not {schema['const']}"] if "const" in schema and value != schema["const"] else []
    found += [f"{at}: not one of {schema['enum']}"] if "enum" in schema and value not in schema["enum"] else []
    if schema.get("format") == "date-time" and datetime.fromisoformat(value).utcoffset() is None:
        found.append(f"{at}: no offset")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        found += [f"{at}: lacks {name}" for name in schema.get("required", []) if name not in value]
        found += [f"{at}: undescribed {name}" for name in value if name not in properties]
        for name in value.keys() & properties.keys():
            found += violations(value[name], properties[name], f"{at}.{name}")
    if isinstance(value, list):
        for i, each in enumerate(value):
            found += violations(each, schema.get("items", {}), f"{at}[{i}]")
    return found
