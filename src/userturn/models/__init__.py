"""Model folders: built from a pinned source, described by the digests of their files."""

from userturn.models.folder import ModelError, build_copy, describe, write_description
from userturn.models.gguf import build_from_gguf, convert
from userturn.models.snapshot import build_from_folder, build_from_hub

__all__ = [
    "ModelError",
    "build_copy",
    "build_from_folder",
    "build_from_gguf",
    "build_from_hub",
    "convert",
    "describe",
    "write_description",
]
