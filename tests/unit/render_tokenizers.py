"""Small tokenizers with each family's control tokens, for the tests of the renderer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from userturn.messages import Message

TEMPLATES = Path(__file__).parents[1] / "templates"

_MERGES = [("Ġ", "U"), ("Ċ", "Ċ"), ("Ġ", "w"), ("h", "i"), ("Ġ", "Ġ"), ("<", "|")]


def user(content: str) -> Message:
    return Message(role="user", content=content)


def assistant(content: str) -> Message:
    return Message(role="assistant", content=content)


def system(content: str) -> Message:
    return Message(role="system", content=content)


@dataclass(frozen=True)
class Family:
    """A template file and what its tokenizer has."""

    template: str
    special: Mapping[str, int]
    plain_added: Mapping[str, int] = field(default_factory=dict)
    bos: str | None = None
    eos: str | None = None

    def tokenizer(self) -> Any:
        return small_tokenizer(
            (TEMPLATES / f"{self.template}.jinja").read_text(encoding="utf-8"),
            self.special,
            self.plain_added,
            bos=self.bos,
            eos=self.eos,
        )


def small_tokenizer(
    template: str | None,
    special: Mapping[str, int],
    plain_added: Mapping[str, int] | None = None,
    *,
    bos: str | None = None,
    eos: str | None = None,
) -> Any:
    """Byte-level BPE: bytes are ids 0 to 255 in spelling order, a few merges follow, controls as given."""
    added = {**special, **(plain_added or {})}
    vocab = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for number, (left, right) in enumerate(_MERGES):
        vocab[left + right] = 256 + number
    backend = Tokenizer(models.BPE(vocab={**vocab, **added}, merges=_MERGES))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_tokens(
        [AddedToken(text, special=text in special, normalized=False) for text in added],
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, bos_token=bos, eos_token=eos)
    tokenizer.chat_template = template
    assert all(tokenizer.convert_tokens_to_ids(text) == number for text, number in added.items())
    return tokenizer


FAMILIES = {
    "chatml": Family("chatml", {"<|endoftext|>": 1000, "<|im_start|>": 1001, "<|im_end|>": 1002}, eos="<|im_end|>"),
    "qwen35": Family(
        "qwen35",
        {"<|endoftext|>": 248044, "<|im_start|>": 248045, "<|im_end|>": 248046},
        {"<think>": 248068, "</think>": 248069},
        eos="<|im_end|>",
    ),
    "harmony": Family(
        "harmony",
        {
            "<|startoftext|>": 199998,
            "<|endoftext|>": 199999,
            "<|return|>": 200002,
            "<|channel|>": 200005,
            "<|start|>": 200006,
            "<|end|>": 200007,
            "<|message|>": 200008,
            "<|call|>": 200012,
        },
        bos="<|startoftext|>",
        eos="<|return|>",
    ),
    "glm45": Family(
        "glm45",
        {
            "<|endoftext|>": 151329,
            "[gMASK]": 151331,
            "<sop>": 151333,
            "<|system|>": 151335,
            "<|user|>": 151336,
            "<|assistant|>": 151337,
        },
        {"<think>": 151350, "</think>": 151351},
        eos="<|endoftext|>",
    ),
    "glm47": Family(
        "glm47",
        {
            "<|endoftext|>": 154820,
            "[gMASK]": 154822,
            "<sop>": 154824,
            "<|system|>": 154826,
            "<|user|>": 154827,
            "<|assistant|>": 154828,
        },
        {"<think>": 154841, "</think>": 154842},
        eos="<|endoftext|>",
    ),
    "llama3": Family(
        "llama3",
        {
            "<|begin_of_text|>": 128000,
            "<|end_of_text|>": 128001,
            "<|start_header_id|>": 128006,
            "<|end_header_id|>": 128007,
            "<|eot_id|>": 128009,
        },
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
    ),
    "gemma": Family(
        "gemma",
        {"<eos>": 1001, "<bos>": 1002, "<start_of_turn>": 1105, "<end_of_turn>": 1106},
        {"\n\n": 1108, "<h1>": 1175},
        bos="<bos>",
        eos="<eos>",
    ),
    "mistral": Family("mistral", {"<s>": 1001, "</s>": 1002}, bos="<s>", eos="</s>"),
    "mistral-v3": Family(
        "mistral", {"<s>": 1001, "</s>": 1002, "[INST]": 1003, "[/INST]": 1004}, bos="<s>", eos="</s>"
    ),
    "plain": Family("plain", {"<s>": 1001, "</s>": 1002}, bos="<s>", eos="</s>"),
}
