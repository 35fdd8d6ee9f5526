"""Sentence embeddings from a local folder, byte-stable after rounding.

The packaged model is all-MiniLM-L6-v2 (https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2): mean
pooling of the last hidden state over the attention mask, then division by the L2 norm, as its model card
describes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float32]

MAX_CHARS = 8_000
REMEMBERED = 20_000
DECIMALS = 4


class Embedder(Protocol):
    """Turns texts into vectors, each text by itself."""

    def encode(self, texts: list[str]) -> FloatArray:
        """Embed each text.

        Args:
            texts: Any strings; the vector of one must not depend on the others.

        Returns:
            Array of shape (n, d), float32, rows of unit length (a zero row is allowed for a text without
            content).
        """
        ...

    def pieces(self, words: list[str]) -> list[int]:
        """Number of word pieces of each word.

        Args:
            words: Lower-case words.

        Returns:
            Counts of at least 1.
        """
        ...


class MiniLMEmbedder:
    """A BERT-like sentence model from a folder, run on the CPU in float32, one text at a time.

    A batch pads, and padding moves the last bits of a vector: in batches of 32 sorted by length 0.04 % of the
    similarities of 300 texts changed in the fourth decimal. One text at a time keeps a result independent of
    order and company. The tokenizer cuts a text at ``max_tokens``.

    Args:
        folder: Folder with ``config.json``, ``model.safetensors`` and ``tokenizer.json``.
        threads: Number of torch threads while encoding; the previous number is put back.
        max_tokens: Longest input in word pieces (the model card: 256).

    Raises:
        FileNotFoundError: If the folder lacks one of the three files.
    """

    def __init__(self, folder: Path, *, threads: int = 1, max_tokens: int = 256) -> None:
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            if not (folder / name).is_file():
                raise FileNotFoundError(
                    f"sentence model folder {folder}: {name} is missing; "
                    "allowed is a folder with config.json, model.safetensors, tokenizer.json"
                )
        from transformers import AutoModel, AutoTokenizer

        self.threads = threads
        self.max_tokens = max_tokens
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        self._model: Any = AutoModel.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
        )
        self._model = self._model.float().eval()
        self._known: dict[str, FloatArray] = {}

    def encode(self, texts: list[str]) -> FloatArray:
        """Embed each text alone.

        Args:
            texts: Any strings. Only the first `MAX_CHARS` characters are tokenized.

        Returns:
            Array of shape (n, d), float32, unit rows.
        """
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.inference_mode():
                rows = [self._remember(text, torch) for text in texts]
        finally:
            torch.set_num_threads(before)
        if not rows:
            return np.zeros((0, int(self._model.config.hidden_size)), dtype=np.float32)
        return np.stack(rows)

    def remember(self, texts: Sequence[str], batch: int = 64) -> None:
        """Embeds texts in batches of equal length, for later calls of `encode`.

        No text is padded, but what stands in one batch can still move the last bits of a vector: for a fixed set of
        texts, such as training examples, and not for turns that are judged.

        Args:
            texts: Any strings.
            batch: Most texts in one batch.
        """
        import torch

        by_length: dict[int, list[tuple[str, list[int]]]] = {}
        for head in sorted({text[:MAX_CHARS] for text in texts} - set(self._known)):
            valid = head.encode("utf-8", "replace").decode("utf-8")
            ids = self._tokenizer(valid, truncation=True, max_length=self.max_tokens)["input_ids"]
            by_length.setdefault(len(ids), []).append((head, ids))
        before = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            with torch.inference_mode():
                for same in by_length.values():
                    for start in range(0, len(same), batch):
                        some = same[start : start + batch]
                        hidden = self._model(input_ids=torch.tensor([ids for _, ids in some])).last_hidden_state
                        rows = torch.nn.functional.normalize(hidden.mean(dim=1), dim=1).numpy().astype(np.float32)
                        self._known.update(zip((head for head, _ in some), rows, strict=True))
        finally:
            torch.set_num_threads(before)

    def pieces(self, words: list[str]) -> list[int]:
        """See `Embedder.pieces`."""
        return [max(1, len(self._tokenizer.tokenize(word))) for word in words]

    def _remember(self, text: str, torch: Any) -> FloatArray:
        # The cells of a shard share queries and assistant turns.
        head = text[:MAX_CHARS]
        if head not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[head] = self._encode_one(head, torch)
        return self._known[head]

    def _encode_one(self, text: str, torch: Any) -> FloatArray:
        # A lone surrogate, which JSON can carry, is no UTF-8 and the tokenizer refuses it.
        valid = text.encode("utf-8", "replace").decode("utf-8")
        tokens = self._tokenizer(valid, truncation=True, max_length=self.max_tokens, return_tensors="pt")
        hidden = self._model(**tokens).last_hidden_state[0]
        mask = tokens["attention_mask"][0].unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * mask).sum(dim=0) / mask.sum().clamp(min=1e-9)
        vector: FloatArray = torch.nn.functional.normalize(mean, dim=0).numpy().astype(np.float32)
        return vector


def encode_unique(embedder: Embedder, texts: Sequence[str]) -> Callable[[str], FloatArray]:
    """Embed each distinct text once.

    Args:
        embedder: Where vectors come from.
        texts: Texts, repeats allowed (the samples of an item share query and answer).

    Returns:
        A function from any of these texts to its vector of shape (d,).

    Raises:
        ValueError: If the embedder returned another number of rows than it was given texts.
    """
    unique = sorted(set(texts))
    matrix = np.asarray(embedder.encode(unique), dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[0] != len(unique):
        raise ValueError(f"embedder returned shape {matrix.shape} for {len(unique)} texts; allowed is (n, d)")
    index = {text: row for row, text in enumerate(unique)}
    return lambda text: np.asarray(matrix[index[text]], dtype=np.float32)


def similarity(left: FloatArray, right: FloatArray) -> float:
    """Cosine similarity of two unit vectors, rounded to `DECIMALS` decimals.

    Args:
        left: Vector of shape (d,).
        right: Vector of shape (d,).

    Returns:
        A value in [-1, 1], or nan when the product is not a finite number.
    """
    value = float(np.dot(left.astype(np.float64), right.astype(np.float64)))
    if not math.isfinite(value):
        return math.nan
    # Adding zero turns -0.0 into 0.0, which JSON writes differently.
    return round(min(1.0, max(-1.0, value)), DECIMALS) + 0.0
