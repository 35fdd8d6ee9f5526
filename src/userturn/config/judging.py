"""Judges: who says whether a user turn is a genuine follow-up."""

from __future__ import annotations

from typing import Literal

from userturn.config.section import Section
from userturn.sources.config import Source


class ProvisionalJudge(Section):
    """Program rules and sentence embeddings: a first judge, shown as provisional wherever its labels are counted."""

    kind: Literal["provisional"] = "provisional"
    embedder: Source
    """Where the sentence model comes from: a folder with its weights and tokenizer."""
