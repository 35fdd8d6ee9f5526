"""What the stages that prompt a model share: its renderer and the facts of its template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from userturn import layout
from userturn.artefacts import read_json
from userturn.job import JobSpec
from userturn.render import Renderer, TurnFormat, load_renderer


class RendererSpec(JobSpec):
    """How a model's chat template is used."""

    prefix: Literal["stripped", "retained"]
    thinking: bool | None
    template_kwargs: Mapping[str, str | int | bool]
    extra_stop_token_ids: tuple[int, ...]

    def load(self, model: str) -> Renderer:
        """The renderer of a model of the study."""
        return load_renderer(
            layout.model_folder(model),
            prefix=self.prefix,
            thinking=self.thinking,
            template_kwargs=dict(self.template_kwargs),
            extra_stop_token_ids=self.extra_stop_token_ids,
        )


def template_facts(format: TurnFormat) -> dict[str, Any]:
    """What a manifest tells of a chat template."""
    return {
        "family": format.family,
        "sha256": format.template_sha256,
        "user_header": format.user_header,
        "user_header_token_ids": list(format.user_header_token_ids),
        "user_end": format.user_end,
        "stop_token_ids": list(format.stop_token_ids),
        "stop_strings": list(format.stop_strings),
        "assistant_header": format.assistant_header,
        "assistant_turn_header": format.assistant_turn_header,
        "assistant_stop_token_ids": list(format.assistant_stop_token_ids),
        "notes": list(format.notes),
    }


def weights_sha256(model: str) -> str:
    """The digest of a model's folder, as its description states it."""
    return str(read_json(layout.model(model))["weights_sha256"])
