"""Adapters into weights: the base's own files with only the adapted tensors changed.

Everything else of the folder (tokenizer, chat template, configs, other tensors) is the base's, byte for byte, so that
no setting of a training run can leak into the model that is probed.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from userturn.files import atomic_folder
from userturn.messages import Message
from userturn.models.folder import DESCRIPTION, ModelError, describe, write_description
from userturn.render import Renderer

_WEIGHTS = "*.safetensors"


@dataclass(frozen=True)
class Adapter:
    """A trained low-rank update.

    Attributes:
        pairs: by module, as the base names it (``model.layers.0.self_attn.q_proj``): A of shape (rank, in) and B of
            shape (out, rank), float32.
        scale: what B A is multiplied by.
    """

    pairs: Mapping[str, tuple[Any, Any]]
    scale: float

    @property
    def sha256(self) -> str:
        """Digest over names, shapes and bytes."""
        import hashlib

        digest = hashlib.sha256(f"scale {self.scale!r}\n".encode())
        for module in sorted(self.pairs):
            for part, tensor in zip("AB", self.pairs[module], strict=True):
                digest.update(f"{module} {part} {tuple(tensor.shape)}\n".encode())
                digest.update(tensor.contiguous().numpy().tobytes())
        return digest.hexdigest()


def adapter_of(model: Any) -> Adapter:
    """The adapter of a PEFT model with LoRA layers."""
    from peft import get_peft_model_state_dict

    (config,) = model.peft_config.values()
    found: dict[str, dict[str, Any]] = {}
    for name, tensor in get_peft_model_state_dict(model).items():
        module, _, part = name.removeprefix("base_model.model.").removesuffix(".weight").rpartition(".")
        found.setdefault(module, {})[part] = tensor.detach().float().cpu()
    if any(set(parts) != {"lora_A", "lora_B"} for parts in found.values()):
        raise ModelError(
            f"the adapter has other parts than A and B: {sorted({p for one in found.values() for p in one})}"
        )
    return Adapter({m: (parts["lora_A"], parts["lora_B"]) for m, parts in found.items()}, config.lora_alpha / config.r)


def _targets(modules: Sequence[str], tensors: Sequence[str]) -> dict[str, str]:
    """Tensor by module: their names may differ in what stands before them, for instance in a model with vision."""
    found = {}
    for module in modules:
        tail = f"{module}.weight"
        same = [name for name in tensors if name == tail]
        inner = f".{module.removeprefix('model.')}.weight"
        named = same or [name for name in tensors if name.endswith(inner)]
        if len(named) != 1:
            raise ModelError(f"the adapter's module {module} fits {len(named)} tensors of the base, 1 is needed")
        found[named[0]] = module
    return found


def merge(base: Path, adapter: Adapter, destination: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the base with an adapter merged in, as a model folder that appears whole or not at all.

    Sums are computed in float32 and rounded to each tensor's own type; one file is held in memory at a time.

    Args:
        base: the base's model folder.
        adapter: the update.
        destination: the variant's folder.
        facts: further pinned facts for ``model.json``.

    Returns:
        The description.

    Raises:
        ModelError: a module fits no tensor, or a merged weight is not finite.
    """
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    shards = sorted(base.glob(_WEIGHTS))
    names: dict[Path, list[str]] = {}
    for shard in shards:
        with safe_open(shard, framework="pt") as tensors:
            names[shard] = sorted(tensors.keys())
    targets = _targets(sorted(adapter.pairs), [name for found in names.values() for name in found])
    with atomic_folder(destination) as folder:
        for name in describe(base)["files"]:
            if name not in {shard.name for shard in shards}:
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(base / name, folder / name)
        for shard in shards:
            merged = {}
            with safe_open(shard, framework="pt") as tensors:
                for name in names[shard]:
                    tensor = tensors.get_tensor(name)
                    if name in targets:
                        a, b = adapter.pairs[targets[name]]
                        tensor = (tensor.float() + adapter.scale * (b @ a)).to(tensor.dtype)
                        if not bool(torch.isfinite(tensor).all()):
                            raise ModelError(f"the merged tensor {name} is not finite: training diverged")
                    merged[name] = tensor.contiguous()
            save_file(merged, str(folder / shard.name), metadata={"format": "pt"})
        return write_description(folder, dict(facts))


def check_rendering(base: Renderer, variant: Renderer) -> None:
    """Refuses a variant whose prompts or stops are not those of its base.

    Raises:
        ModelError: naming what differs.
    """
    talk = [
        Message(role="user", content="How do I boil an egg?"),
        Message(role="assistant", content="Eight minutes in boiling water."),
    ]
    pairs = {
        "the prompt of a user turn": (base.user_prompt(talk), variant.user_prompt(talk)),
        "the prompt of an assistant turn": (base.assistant_prompt(talk[:1]), variant.assistant_prompt(talk[:1])),
        "what ends a turn": (base.format, variant.format),
    }
    for what, (one, other) in pairs.items():
        if one != other:
            raise ModelError(f"{what} is not the base's: tokenizer, template and end tokens must stay as they are")


__all__ = ["DESCRIPTION", "Adapter", "adapter_of", "check_rendering", "merge"]
