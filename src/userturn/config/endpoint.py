"""A server that speaks the OpenAI protocol: where it is, and how it is asked."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from userturn.config.section import Section

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class EndpointConfig(Section):
    """Where a server is, and how it is asked."""

    base_url: str
    """Address of the API up to its version, such as `http://localhost:8000/v1`; without user, password or query."""
    model: str = Field(min_length=1)
    """The model's name, as the server lists it."""
    api_key_env: str | None = None
    """Name of the environment variable that holds the API key; null where the server asks for none. Never the key."""
    timeout_seconds: float = Field(default=600.0, gt=0.0)
    """Longest wait for one answer, from asking to its last byte."""
    max_concurrency: int = Field(default=32, ge=1, le=1024)
    """Requests in flight at once."""
    max_attempts: int = Field(default=6, ge=1, le=20)
    """How often one request is made in all, where the server is busy, broken or cut off."""
    max_wait_seconds: float = Field(default=300.0, ge=0.0)
    """Longest wait between two attempts. A server that asks for a longer one is not asked again."""

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, value: str) -> str:
        try:
            parts = urlsplit(value)
            wrong = parts.scheme not in {"http", "https"} or not parts.hostname or parts.port == 0
        except ValueError:
            wrong, parts = True, urlsplit("")
        if "@" in value or parts.query or parts.fragment:
            # the error must not repeat what it refuses
            raise PydanticCustomError(
                "secret",
                "must not hold a user, a password, a query or a fragment: a key is named in api_key_env, as the "
                "environment variable that holds it",
            )
        if wrong or not value.isprintable() or " " in value:
            raise PydanticCustomError(
                "address", "must be an http or https address of an API, such as http://localhost:8000/v1"
            )
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _variable(cls, value: str | None) -> str | None:
        if value is not None and not _VARIABLE.fullmatch(value):
            raise PydanticCustomError(
                "secret",
                "must be the name of an environment variable (letters, digits and '_'), such as OPENAI_API_KEY; "
                "never the key itself",
            )
        return value


class ModelEndpoint(EndpointConfig):
    """A completions endpoint that writes the turns of a model of the grid."""

    prompt: Literal["token_ids", "text"] = "token_ids"
    """How prompts are sent. `token_ids`: the ids that were rendered, with vLLM's further parameters, for vLLM and
    servers like it. `text`: the same prompt as a string, sampling and stops in the parameters of OpenAI's own protocol:
    at most four stops, and no `top_k`, `min_p` or `repetition_penalty`."""
