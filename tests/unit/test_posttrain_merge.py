"""Adapters into weights: only the adapted tensors change, and the folder stays the base's in all else."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from safetensors.torch import load_file, save_file

from posttrain_fixture import tiny_model
from userturn.models.folder import ModelError, describe
from userturn.posttrain.merge import Adapter, check_rendering, merge
from userturn.render import load_renderer


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("models") / "tiny")


def adapter(value: float = 0.5, module: str = "model.layers.0.self_attn.q_proj") -> Adapter:
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(2, 32, generator=generator) * value, torch.randn(32, 2, generator=generator)
    return Adapter({module: (a, b)}, 2.0)


def test_only_the_adapted_tensor_changes_and_by_the_scaled_product(base, tmp_path):
    update = adapter()
    merge(base, update, tmp_path / "out", {"origin": {"kind": "test"}})
    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "out"))
    name = "model.layers.0.self_attn.q_proj.weight"
    ((a, b),) = update.pairs.values()
    assert torch.equal(after[name], before[name] + 2.0 * (b @ a))
    assert {key for key in before if not torch.equal(before[key], after[key])} == {name}
    assert before.keys() == after.keys()


def test_every_other_file_is_the_bases_byte_for_byte(base, tmp_path):
    made = merge(base, adapter(), tmp_path / "out", {})
    was = describe(base)["files"]
    changed = {name for name, facts in made["files"].items() if facts != was.get(name)}
    assert changed == {"model.safetensors"}
    assert made["weights_sha256"] == describe(tmp_path / "out")["weights_sha256"]


def test_the_same_adapter_gives_the_same_bytes_and_no_update_gives_the_base(base, tmp_path):
    first, second = (merge(base, adapter(), tmp_path / name, {})["weights_sha256"] for name in "ab")
    assert first == second
    merge(base, adapter(0.0), tmp_path / "c", {})
    same = load_file(base / "model.safetensors")
    assert all(torch.equal(t, same[name]) for name, t in load_file(tmp_path / "c" / "model.safetensors").items())


def test_a_tensor_keeps_its_own_type_and_a_deeper_name_is_found(base, tmp_path):
    deep = tmp_path / "deep"
    deep.mkdir()
    tensors = {
        f"model.language_model.{name.removeprefix('model.')}": tensor.to(torch.bfloat16)
        for name, tensor in load_file(base / "model.safetensors").items()
    }
    save_file(tensors, str(deep / "model.safetensors"))
    (deep / "config.json").write_text("{}")
    merge(deep, adapter(), tmp_path / "out", {})
    after = load_file(tmp_path / "out" / "model.safetensors")
    name = "model.language_model.layers.0.self_attn.q_proj.weight"
    assert after[name].dtype == torch.bfloat16
    assert not torch.equal(after[name], tensors[name])


def test_a_module_that_fits_no_tensor_and_a_weight_that_is_not_finite_are_refused(base, tmp_path):
    with pytest.raises(ModelError, match=r"model\.layers\.9\.self_attn\.q_proj fits 0 tensors"):
        merge(base, adapter(module="model.layers.9.self_attn.q_proj"), tmp_path / "out", {})
    with pytest.raises(ModelError, match="not finite"):
        merge(base, adapter(float("inf")), tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


def test_a_digest_of_an_adapter_sees_values_names_and_scale():
    one = adapter()
    others = [adapter(0.6), adapter(module="model.layers.1.self_attn.q_proj"), Adapter(one.pairs, 1.0)]
    assert adapter().sha256 == one.sha256
    assert len({one.sha256, *(other.sha256 for other in others)}) == 4


def test_a_changed_template_or_lost_end_token_is_noticed(base, tmp_path):
    merge(base, adapter(), tmp_path / "out", {})
    check_rendering(load_renderer(base), load_renderer(tmp_path / "out"))
    generation = tmp_path / "out" / "generation_config.json"
    settings = json.loads(generation.read_text())
    generation.write_text(json.dumps(settings | {"eos_token_id": [1002, 7]}))
    with pytest.raises(ModelError, match="what ends a turn"):
        check_rendering(load_renderer(base), load_renderer(tmp_path / "out"))
    template = tmp_path / "out" / "chat_template.jinja"
    template.write_text(template.read_text().replace("<|im_start|>", "<|im_start|> "))
    with pytest.raises(ModelError, match="the prompt of a user turn"):
        check_rendering(load_renderer(base), load_renderer(tmp_path / "out"))
