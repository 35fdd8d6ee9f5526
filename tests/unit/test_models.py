"""Model folders: descriptions, copies out of wheels, and the conversion from GGUF.

The conversion itself needs torch, transformers and gguf, and runs where they are.
"""

import hashlib
import json
import os
import shutil
import stat
import subprocess
import zipfile
from pathlib import Path

import pytest

from userturn.models import ModelError, build_copy, build_from_gguf, convert, describe, write_description
from userturn.sources import FileSource, SourceCache, SourceError, WheelSource

FILES = {"config.json": b"{}", "model.safetensors": b"weights", "1_Pooling/config.json": b"[]"}
GOLDEN = "930d1aa91fb8398f0e3b6e8f585dbbe06a68192aab9059d3182e5ea2aab2c0fc"
TEMPLATE = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make(folder, files):
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def listing(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir())


def plant(tmp_path, files):
    """Puts a wheel with a model inside into a cache."""
    data = tmp_path / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(f"demo/model/{name}"), content)
        archive.writestr(zipfile.ZipInfo("demo/__init__.py"), b"raise SystemExit('imported')")
    digest = sha256(data.read_bytes())
    cache = SourceCache(tmp_path / "cache")
    cache.folder(digest).mkdir(parents=True)
    data.rename(cache.folder(digest) / data.name)
    return cache, WheelSource(kind="wheel", package="demo", version="1.0", sha256=digest, member="demo/model/")


def test_a_description_is_golden(tmp_path):
    described = describe(make(tmp_path, FILES))
    assert described["files"] == {
        name: {"sha256": sha256(data), "size": len(data)} for name, data in sorted(FILES.items())
    }
    assert described["weights_sha256"] == GOLDEN


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="needs sha256sum")
def test_the_digest_can_be_had_with_common_tools(tmp_path):
    folder = make(tmp_path, {**FILES, "Z.txt": b"z", "é name.txt": b"e", "a-b": b"", "a/b": b""})
    expected = write_description(folder)["weights_sha256"]
    listed = "find . -type f ! -path ./model.json -printf '%P\\n' | LC_ALL=C sort"
    command = f"{listed} | xargs -d '\\n' sha256sum | sha256sum"
    done = subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == expected


def test_the_digest_sees_bytes_names_and_places(tmp_path):
    variants = [
        FILES,
        {**FILES, "config.json": b"{ }"},
        {**FILES, "more.txt": b""},
        {name: data for name, data in FILES.items() if name != "config.json"},
        {**{name: data for name, data in FILES.items() if name != "config.json"}, "Config.json": b"{}"},
        {"a": b"1", "b": b"2"},
        {"a": b"2", "b": b"1"},
    ]
    digests = [describe(make(tmp_path / str(n), files))["weights_sha256"] for n, files in enumerate(variants)]
    assert len(set(digests)) == len(variants)


def test_model_json_is_written_the_same_wherever_the_folder_lies(tmp_path):
    folders = [make(tmp_path / "a", FILES), make(tmp_path / "deep" / "b", FILES)]
    for folder in folders:
        assert write_description(folder, {"origin": {"z": 1, "a": 2}})["origin"] == {"z": 1, "a": 2}
    first, second = ((folder / "model.json").read_bytes() for folder in folders)
    assert first == second
    assert json.loads(first)["weights_sha256"] == describe(folders[0])["weights_sha256"]
    assert write_description(folders[0], {"origin": {"a": 2, "z": 1}}) == json.loads(first)


def test_folders_that_cannot_be_described(tmp_path):
    with pytest.raises(ModelError, match="is not a folder"):
        describe(tmp_path / "none")
    with pytest.raises(ModelError, match="holds no files"):
        describe(tmp_path)
    make(tmp_path, FILES)
    with pytest.raises(ModelError, match="must not be named weights_sha256"):
        write_description(tmp_path, {"weights_sha256": "forged"})
    (tmp_path / "link").symlink_to(tmp_path / "config.json")
    with pytest.raises(ModelError, match="'link' in"):
        describe(tmp_path)


def test_a_packaged_model_is_copied_whole(tmp_path):
    cache, source = plant(tmp_path, FILES)
    target = tmp_path / "data" / "embedder"
    described = build_copy(source, cache, target)
    assert listing(target) == ["1_Pooling/config.json", "config.json", "model.json", "model.safetensors"]
    assert all((target / name).read_bytes() == data for name, data in FILES.items())
    assert described == json.loads((target / "model.json").read_text())
    assert described["origin"]["package"] == "demo"
    assert described["weights_sha256"] == GOLDEN
    assert str(tmp_path) not in (target / "model.json").read_text()
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.rglob("*") if path.is_file()} == {0o644}
    before = (target / "model.json").read_bytes()
    build_copy(source, cache, target)
    assert (target / "model.json").read_bytes() == before
    assert listing(target.parent) == [f"embedder/{name}" for name in listing(target)]


def test_a_failed_copy_leaves_the_old_folder(tmp_path):
    cache, source = plant(tmp_path, {**FILES, "../../evil": b""})
    target = make(tmp_path / "data" / "embedder", {"old": b""})
    with pytest.raises(SourceError, match="outside its folder"):
        build_copy(source, cache, target)
    assert listing(tmp_path / "data") == ["embedder/old"]


def test_bad_conversions_are_refused_before_anything_is_imported_or_written(tmp_path):
    bad = make(tmp_path, {"x.gguf": b"GGML...."}) / "x.gguf"
    with pytest.raises(ModelError, match=r"x\.gguf is no GGUF file: it starts with b'GGML'"):
        convert(bad, tmp_path / "out", "float32")
    with pytest.raises(ModelError, match="float32, bfloat16, got 'float16'"):
        convert(bad, tmp_path / "out", "float16")
    with pytest.raises(ModelError, match="is not a file"):
        convert(tmp_path / "none.gguf", tmp_path / "out", "float32")
    source = FileSource(kind="file", path=str(bad), sha256=sha256(bad.read_bytes()))
    with pytest.raises(ModelError, match="is no GGUF file"):
        build_from_gguf(source, SourceCache(tmp_path / "cache"), tmp_path / "out", "float32")
    assert listing(tmp_path) == ["x.gguf"]


# the conversion


def tiny_gguf(path, template=TEMPLATE):
    """Writes a random two-layer llama with a byte-level vocabulary."""
    gguf, numpy = pytest.importorskip("gguf"), pytest.importorskip("numpy")
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *bytes_to_unicode().values(), "ab"]
    width, inner, heads, layers = 32, 64, 2, 2
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_context_length(128)
    writer.add_embedding_length(width)
    writer.add_block_count(layers)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(width // heads)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (len(tokens) - 3))
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    if template:
        writer.add_chat_template(template)
    random = numpy.random.default_rng(7)

    def add(name, *shape):
        writer.add_tensor(name, random.standard_normal(shape, dtype=numpy.float32) * 0.05)

    add("token_embd.weight", len(tokens), width)
    add("output_norm.weight", width)
    for layer in range(layers):
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            add(f"blk.{layer}.{name}.weight", width, width)
        add(f"blk.{layer}.ffn_gate.weight", inner, width)
        add(f"blk.{layer}.ffn_up.weight", inner, width)
        add(f"blk.{layer}.ffn_down.weight", width, inner)
        add(f"blk.{layer}.attn_norm.weight", width)
        add(f"blk.{layer}.ffn_norm.weight", width)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


WRITTEN = [
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "model.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
]


@pytest.mark.engine
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tiny_model_is_converted_to_the_same_bytes_anywhere(tmp_path, dtype):
    gguf = tiny_gguf(tmp_path / "tiny.gguf")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folders = [tmp_path / "a", tmp_path / "deep" / "b"]
    convert(gguf, folders[0], dtype, {"origin": {"kind": "file"}})
    moved = shutil.copy(gguf, tmp_path / "other.gguf")
    convert(Path(moved), folders[1], dtype, {"origin": {"kind": "file"}})
    assert listing(folders[0]) == WRITTEN
    for name in WRITTEN:
        first, second = ((folder / name).read_bytes() for folder in folders)
        assert first == second, name
        assert str(tmp_path).encode() not in first, name
        assert stat.S_IMODE((folders[0] / name).stat().st_mode) == 0o644
    config = json.loads((folders[0] / "config.json").read_text())
    assert (config["dtype"], config["architectures"]) == (dtype, ["LlamaForCausalLM"])
    assert not [name for name in config if name.startswith("_") or name == "quantization_config"]
    assert (folders[0] / "chat_template.jinja").read_text() == TEMPLATE

    tokenizer = AutoTokenizer.from_pretrained(folders[0])
    model = AutoModelForCausalLM.from_pretrained(folders[0])
    assert model.dtype == getattr(torch, dtype)
    ids = tokenizer.apply_chat_template([{"role": "user", "content": "abc"}], return_dict=False)
    assert (ids[0], ids[-2]) == (1, 2)
    out = model.generate(torch.tensor([ids]), max_new_tokens=3, do_sample=False)
    assert out.shape[1] > len(ids)


@pytest.mark.engine
def test_a_model_without_a_chat_template_is_refused(tmp_path):
    gguf = tiny_gguf(tmp_path / "tiny.gguf", template=None)
    with pytest.raises(ModelError, match="no chat template"):
        convert(gguf, tmp_path / "out", "float32")
    assert listing(tmp_path) == ["tiny.gguf"]


@pytest.mark.engine
def test_the_real_model_loads_and_answers():
    folder = os.environ.get("USERTURN_TEST_MODEL")
    if not folder:
        pytest.skip("USERTURN_TEST_MODEL names no converted SmolLM2-135M-Instruct")
    torch = pytest.importorskip("torch")
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    messages = [{"role": "user", "content": "What is the capital of France?"}]
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    out = model.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False)[0, len(ids) :]
    assert "Paris" in tokenizer.decode(out, skip_special_tokens=True)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
