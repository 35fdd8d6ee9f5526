"""Families of tests: Holm within the confirmatory family, Benjamini and Hochberg within each other quantity."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from userturn.artefacts import Row
from userturn.statistics import benjamini_hochberg, holm


def adjusted(rows: Sequence[Row], confirmatory: Sequence[str]) -> list[Row]:
    """Fills in the adjusted p-values.

    Args:
        rows: all numbers; those without a p-value stay as they are.
        confirmatory: patterns of number ids (``*`` matches anything) whose tests form the confirmatory family.
    """
    families: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        if row["p_value"] is not None:
            chosen = any(fnmatchcase(row["id"], pattern) for pattern in confirmatory)
            name = "confirmatory (Holm)" if chosen else f"{row['quantity']} (Benjamini-Hochberg)"
            families.setdefault(name, []).append(index)
    result = list(rows)
    for name, members in families.items():
        adjust = holm if name.startswith("confirmatory") else benjamini_hochberg
        for index, value in zip(members, adjust([rows[i]["p_value"] for i in members]), strict=True):
            result[index] = {
                **rows[index],
                "p_adjusted": value and round(value, 12),
                "family": f"{name}, {len(members)}",
            }
    return result
