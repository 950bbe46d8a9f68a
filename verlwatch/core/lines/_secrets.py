"""What is or may be secret in a line: the name of a value tells it, or its own shape.

Scripts print the command that starts a run and libraries the request that failed, so a key may stand anywhere in a
text.  What is told of a line is told without it.  A name like ``token`` or ``pass`` means a text, not a number:
``ppo_max_token_len_per_gpu`` counts tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

LOOKED_AT: Final = 4096
"""Characters of a text that are looked at; the rest is left out."""

_BLANK = "***"
_ALWAYS = (
    r"passw(?:or)?d|passphrase|secret|credential|authorization|connection[_-]?string|"
    r"(?:api|access|private|account|ssh|signing|encryption|hf|master|deploy|shared|storage|license)[_-]?key"
)
_WORDS = r"auth|bearer|cookies?|dsn|otp|pass|pat|pwd|sas|session|sig|signature"
_MAYBE = rf"(?:token(?!iz)|(?<![a-z])(?:{_WORDS})(?![a-z]))"  # neither tokenizer nor tokenization

_SURE_NAME = re.compile(_ALWAYS)
_MAYBE_NAME = re.compile(_MAYBE)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NUMERIC = re.compile(r"[-+.eE0-9]+|true|false|null|None|True|False")

_VALUE = r"(?:\"[^\"]*+(?:\"|$)|'[^']*+(?:'|$)|\\?[\"'][^\"'\\]*+|[^\s,;&)\]}\"'\\]++)"
_TEXT = rf"(?!(?:[-+]?[0-9][0-9.]*+(?:e[-+]?[0-9]++)?|true|false|null|none)(?![\w.+/-])){_VALUE}"
_GIVEN = r"(?:\\?[\"'])?\s?[=:]\s?"
_PATTERNS = (
    r"(?P<login>(?<=://)[^\s/@]{1,200}(?=@))",
    r"(?P<scheme>\b(?:Bearer|Basic)\s{1,2})[\w.+/=~-]{6,}+",
    r"(?P<header>\bCookie: )[^\"']++",
    r"(?P<shape>\b(?:sk-|hf_|gh[pousr]_|github_pat_|glpat-|AIza)[\w-]{12,}+|\b(?:xox[a-z]|xapp)-[\w-]{8,}+|"
    r"\bA[KS]IA[0-9A-Z]{12,}+|\beyJ[\w-]{8,}+\.[\w.-]{8,}+|(?<=hooks\.slack\.com/)[\w/-]{8,}+)",
    rf"(?P<option>(?<![\w-])--?[\w-]{{0,40}}(?:{_ALWAYS}|{_MAYBE})[\w-]{{0,40}}\s{{1,4}})(?!-){_TEXT}",
    rf"(?P<sure>(?:{_ALWAYS})[\w.-]{{0,40}}{_GIVEN}){_VALUE}",
    rf"(?P<maybe>{_MAYBE}[\w-]{{0,40}}(?:=|:(?=\S)|\\?[\"']\s?[:=]\s?)){_TEXT}",
    rf"(?P<variable>(?-i:\b(?:[A-Z0-9]{{1,40}}_){{0,6}}KEY=)){_VALUE}",
)
_SECRETS = tuple(re.compile(pattern, re.IGNORECASE) for pattern in _PATTERNS)
_HINTS = (
    *("key", "token", "secret", "pass", "pwd", "credential", "auth", "bearer", "basic", "cookie", "dsn", "otp", "pat"),
    *("sas", "session", "sig", "string", "://", "sk-", "hf_", "gh", "glpat", "xox", "xapp", "akia", "asia", "aiza"),
    *("eyj", "slack"),
)


def blanked(text: str) -> str:
    """The text with ``***`` for whatever may be secret in it; of a text longer than LOOKED_AT no more than that."""
    text = text[:LOOKED_AT]
    small = text.lower()
    if any(hint in small for hint in _HINTS):
        for pattern in _SECRETS:
            text = pattern.sub(_without, text)
    return text


def is_secret(key: str, value: Any) -> bool:
    """Whether the value under a dotted key is or may be secret, by any part of its name or by what it looks like."""
    name = _CAMEL.sub("_", key).lower()
    return _SURE_NAME.search(key.lower()) is not None or _looks_secret(name, value)


def _looks_secret(name: str, value: Any) -> bool:
    if isinstance(value, str):
        is_meant = _MAYBE_NAME.search(name) is not None and not _NUMERIC.fullmatch(value)
        return is_meant or blanked(value) != value[:LOOKED_AT]
    if isinstance(value, Mapping):
        return any(is_secret(f"{name}.{inner}", below) for inner, below in value.items())
    return isinstance(value, list | tuple) and any(_looks_secret(name, below) for below in value)


def _without(found: re.Match[str]) -> str:
    """What names the secret stays."""
    return _BLANK if found.lastgroup in {"login", "shape"} else f"{found[1]}{_BLANK}"
