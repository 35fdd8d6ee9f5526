"""Model folders: built from a pinned source, described by the digests of their files."""

from userturn.models.folder import ModelError, build_copy, describe, write_description
from userturn.models.gguf import build_from_gguf, convert

__all__ = ["ModelError", "build_copy", "build_from_gguf", "convert", "describe", "write_description"]
