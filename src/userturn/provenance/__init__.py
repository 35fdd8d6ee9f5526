"""What a study was: numbers audited and cells rebuilt by the manifests; sealed, restored, verified, exported.

From the manifests: `lineage` (which file came from which), `audit` with `shown` (what the page shows of a number) and
`rows` (the rows behind it), `rebuild` with `replay` (the stages of a cell in one process).
Seals: `record` (what a seal holds), `digests` (digests remembered between seals), `jobs` (Snakemake's records), `dvc`
(the program, its settings), `seal`, `restore`, `verify`, `difference` (what differs first, and by how much), `contents`
(sealed files read from DVC's cache).
Export: `crate` with `crate_study`, `crate_graph` and `crate_words`; `citation`.
"""

import difflib
from collections.abc import Collection, Sequence


def nearest(wanted: str, known: Collection[str]) -> str:
    """Names like one that is not there, as the end of a message; empty where none is like it."""
    near = [name for name in known if wanted in name][:5] or difflib.get_close_matches(wanted, known, n=5, cutoff=0.4)
    return "; near ones:\n  " + "\n  ".join(near) if near else ""


def some(texts: Sequence[str], separator: str = ", ") -> str:
    """The first five of many, and how many more there are."""
    more = f" and {len(texts) - 5} more" if len(texts) > 5 else ""
    return separator.join(texts[:5]) + more


class ProvenanceError(RuntimeError):
    """A study cannot be sealed, restored or verified; the message says why and what can be done."""
