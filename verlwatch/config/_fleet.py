"""What agents and a hub are told of each other."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from verlwatch import fields
from verlwatch.fields import FilePath, Model, SecretPath, Size, Url, within

PlainHttp = Literal["refused", "allowed"]
_NAME_LIMIT = 100


def parse_agent_name(text: str) -> str:
    """``text`` if it can stand in front of a file's name."""
    if not text.strip() or not text.isprintable() or len(text) > _NAME_LIMIT or ":" in text:
        raise ValueError("must be 1 to 100 printable characters without a colon; the host's name will do")
    return text


AgentName = Annotated[str, AfterValidator(parse_agent_name)]


def is_loopback(host: str) -> bool:
    """Whether what is sent to ``host`` stays on this one."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Agent(Model):
    """What this host's agent ships to which hub."""

    plain_http: PlainHttp = Field(
        default="refused",
        description="`allowed` lets `agent.hub` be an http:// URL beyond loopback: whoever listens on the way reads "
        "the token and can forge what the agent says.",
    )
    hub: Url | None = Field(
        default=None,
        description="URL of the hub, for example https://hub.example.org:9878. If set, this verlwatch is an agent: it "
        "reads its runs' logs and judges nothing itself.",
    )
    token_file: SecretPath | None = Field(
        default=None, validate_default=True, description="File with the token that the hub has for this agent."
    )
    name: AgentName | None = Field(
        default=None, description="Name under which the hub knows this agent. Default: the host's name."
    )
    ca: FilePath | None = Field(
        default=None,
        description="File with the certificate (PEM) of the authority that signed the hub's. Default: the system's.",
    )
    certificate: FilePath | None = Field(
        default=None, description="File with the agent's own certificate (PEM), where the hub asks for one."
    )
    key: FilePath | None = Field(default=None, description="File with the key of `agent.certificate` (PEM).")
    outbox_size: Annotated[Size, within(fields.parse_size, "1MiB", "1TiB")] = Field(
        default="256MiB",
        validate_default=True,
        description="Room for what the hub has not taken yet; beyond it samples are left out, the oldest first, and "
        "counted; events are not (1MiB to 1TiB).",
    )

    @field_validator("hub")
    @classmethod
    def _is_private(cls, hub: str | None, info: ValidationInfo) -> str | None:
        parts = urlsplit(hub or "")
        is_private = parts.scheme == "https" or is_loopback(parts.hostname or "")
        if hub and not is_private and info.data.get("plain_http") != "allowed":
            raise ValueError("is not encrypted; use https://, or set agent.plain_http to allowed")
        return hub

    @field_validator("token_file")
    @classmethod
    def _is_there(cls, token_file: str | None, info: ValidationInfo) -> str | None:
        if token_file is None and info.data.get("hub"):
            raise ValueError("is needed with agent.hub; name the file with the token that the hub has for this agent")
        return token_file


class HubAgent(Model):
    """An agent that may deliver."""

    name: AgentName = Field(description="The agent's `agent.name`, by default the name of its host.")
    token_file: SecretPath = Field(
        description="File with its token; while tokens change it may hold two, each on a line. Read again at a reload.",
    )


class Hub(Model):
    """Who may deliver what it has read to this hub."""

    plain_http: PlainHttp = Field(
        default="refused",
        description="`allowed` lets a hub listen beyond loopback without TLS: whoever listens on the way reads the "
        "tokens and can forge what agents say.",
    )
    agents: tuple[HubAgent, ...] = Field(
        default=(), description="The agents. If there are any, this verlwatch is a hub: `http.listen` takes deliveries."
    )
