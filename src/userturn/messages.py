"""A conversation as plain data: what every stage passes on and every artefact stores."""

from typing import Literal, TypedDict

Role = Literal["system", "user", "assistant"]

ROLES: tuple[Role, ...] = ("system", "user", "assistant")


class Message(TypedDict):
    """One turn of a conversation.

    Attributes:
        role: Who speaks.
        content: The text as it was written, without any template's markers.
    """

    role: Role
    content: str
