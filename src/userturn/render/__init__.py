"""The chat renderer: one sentinel algorithm that serves every chat template.

`Renderer` turns messages into prompt token ids, for the assistant's turn or for the user's, and `TurnFormat`
states what the template was found to do. See docs/templates.md.
"""

from userturn.render.renderer import Renderer, load_renderer
from userturn.render.types import (
    ChatTokenizer,
    HostileContentError,
    Prefix,
    Prompt,
    TemplateNotProbeable,
    TurnFormat,
)

__all__ = [
    "ChatTokenizer",
    "HostileContentError",
    "Prefix",
    "Prompt",
    "Renderer",
    "TemplateNotProbeable",
    "TurnFormat",
    "load_renderer",
]
