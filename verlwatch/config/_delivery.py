"""How receivers are told, and who is told that verlwatch itself still watches."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from verlwatch import fields
from verlwatch.fields import Duration, Model, SecretPath, Url, within


class Delivery(Model):
    """How receivers are told."""

    grace: Annotated[Duration, within(fields.parse_duration, "0s", "5m")] = Field(
        default="10s",
        validate_default=True,
        description="How long a stopping daemon still judges and delivers (0s to 5m); "
        "the rest follows at the next start.",
    )
    max_backoff: Annotated[Duration, within(fields.parse_duration, "1s", "1d")] = Field(
        default="5m",
        validate_default=True,
        description="Longest wait between two tries to deliver to a receiver that fails (1s to 1d).",
    )
    collapse_after: Annotated[Duration, within(fields.parse_duration, "1m", "30d")] = Field(
        default="1h",
        validate_default=True,
        description="What an incident had to tell and could not be delivered for so long comes as one message, with "
        "its newest state (1m to 30d).",
    )


class Heartbeat(Model):
    """A dead man's switch: a URL that is asked for as long as verlwatch really sees and judges."""

    url: Url | None = Field(
        default=None,
        description="URL that gets a GET as long as verlwatch sees and judges. Use `url_file` if it is secret.",
    )
    url_file: SecretPath | None = Field(default=None, description="File with the URL, if the URL itself is secret.")
    every: Annotated[Duration, within(fields.parse_duration, "1s", "1d")] = Field(
        default="60s", validate_default=True, description="How often (1s to 1d)."
    )
    proxy: Url | None = Field(default=None, description="HTTP proxy; default: what the environment says.")

    @model_validator(mode="after")
    def _has_one_url(self) -> Self:
        if self.url is not None and self.url_file is not None:
            raise ValueError("has url and url_file; leave one of them out")
        return self
