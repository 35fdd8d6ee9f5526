"""What a study was: sealed by DVC, restored elsewhere, verified file by file.

Modules: `record` (what a seal holds), `digests` (digests remembered between seals), `jobs` (Snakemake's records),
`dvc` (the program, its settings), `seal`, `restore`, `verify`, `difference` (what differs first, and by how much),
`contents` (sealed files read from DVC's cache).
"""


class ProvenanceError(RuntimeError):
    """A study cannot be sealed, restored or verified; the message says why and what can be done."""
