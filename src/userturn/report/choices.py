"""What the study takes from the paper, what it reads into it and what it chose itself.

CONFIRMED: the paper's text says so and the study does it. INFERRED: our reading of the paper. OURS: our own
choice, because the paper is not known to say, or because the study does something else (``differs``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["CONFIRMED", "INFERRED", "OURS"]

PAPER = "arXiv 2604.02315 (Shekkizhar, Cosentino, Earle)"

PAPER_MODELS = 11
PAPER_DATASETS = 5


@dataclass(frozen=True)
class Choice:
    """One choice that shapes the numbers.

    Attributes:
        topic: what it is about.
        status: see the module.
        paper: what is known of the paper.
        here: what this study does.
        differs: whether the study is known to do something else than the paper.
    """

    topic: str
    status: Status
    paper: str
    here: str
    differs: bool = False


@dataclass(frozen=True)
class Published:
    """A figure of the paper, what this study has to set beside it, and how far the two can be compared.

    Attributes:
        quantity: what the figure is.
        value: the paper's.
        comparable: whether ours says the same thing.
        ours: which of our numbers stand beside it.
    """

    quantity: str
    value: str
    comparable: str
    ours: Literal["gsm8k accuracy", "deterministic rates", "highest rate"]


_NOT_KNOWN = "Not known."

#: For each kind of perturbation: status, what is known of the paper, what the study does with its parameters.
_PERTURBATIONS: dict[str, tuple[Status, str, Callable[[Mapping[str, Any]], str]]] = {
    "baseline": ("CONFIRMED", "The context is the query and the model's own answer.", lambda p: "The same."),
    "shuffled_context": (
        "OURS",
        "Not in the paper.",
        lambda p: (
            f"The answer to another item of the same dataset, paired by a seeded derangement (draw {p.get('draw', 0)})."
        ),
    ),
    "removed_assistant": (
        "OURS",
        "Not in the paper.",
        lambda p: "The query alone; the user header follows it.",
    ),
    "swapped_roles": (
        "OURS",
        "Not in the paper.",
        lambda p: "The query stands under the assistant role, the answer under the user role.",
    ),
    "truncated_assistant": (
        "OURS",
        "The paper truncates the answer (confirmed); at which fraction is not known.",
        lambda p: f"The first {p['fraction']:g} of the answer's tokens.",
    ),
    "appended_question": (
        "OURS",
        "The paper appends a generic question to the answer (confirmed); its wording is not known.",
        lambda p: f"Appended after a blank line: “{p['question']}”",
    ),
    "repeated_baseline": (
        "OURS",
        "Not in the paper.",
        lambda p: "The baseline generated once more in a cell of its own: at temperature 0 every text must repeat.",
    ),
    "instructed": (
        "OURS",
        "Not in the paper: the paper's probe is raw continuation under the user role (inferred).",
        lambda p: f"A contrast: the model, as the assistant, is told: “{p['instruction']}”",
    ),
    "human_followup": (
        "OURS",
        "Not in the paper.",
        lambda p: "Ceiling control: the follow-up that a person wrote, for items that have one.",
    ),
    "echoed_query": ("OURS", "Not in the paper.", lambda p: "Floor control: the query again, under the user role."),
    "continued_answer": (
        "OURS",
        "Not in the paper.",
        lambda p: f"Floor control: the context ends after {p['fraction']:g} of the answer, the user turn is the rest.",
    ),
    "other_followup": (
        "OURS",
        "Not in the paper.",
        lambda p: f"Floor control: the human follow-up of another item (seeded derangement, draw {p.get('draw', 0)}).",
    ),
}


def _names(names: Mapping[str, Any]) -> str:
    return ", ".join(names)


def _temperatures(probe: Mapping[str, Any]) -> str:
    lists: dict[str, list[str]] = {}
    for name, perturbation in probe["perturbations"].items():
        grid = ", ".join(f"{t:g}" for t in perturbation["temperatures"])
        lists.setdefault(grid, []).append(name.replace("_", " "))
    return "; ".join(f"{', '.join(names)}: {grid}" for grid, names in lists.items()) + "."


def _sampling(sampling: Mapping[str, Any]) -> str:
    return (
        ", ".join(f"{name} {value:g}" for name, value in sampling.items()) + "; none taken from a model's repository."
    )


def _dataset_facts(study: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    parts = []
    for name in study["datasets"]:
        known = facts["datasets"].get(name, {})
        parts.append(f"{name} ({known.get('n_items', '?')} of {known.get('n_available', '?')} items)")
    return ", ".join(parts) + ", chosen by the study's seed."


def choices(study: Mapping[str, Any], facts: Mapping[str, Any]) -> list[Choice]:
    """The choices of a study, those that follow the paper first.

    Args:
        study: the config as plain values.
        facts: see `userturn.report.data.ReportData`.
    """
    probe, statistics = study["probe"], study["statistics"]
    reported = study["judges"][study["reported_judge"]]
    found = [
        Choice(
            "Metric",
            "CONFIRMED",
            "The genuine-followup rate: share of generated user turns that a judge calls genuine.",
            "The same.",
        ),
        Choice(
            "Who writes",
            "CONFIRMED",
            "The same model writes the answer and the user turn.",
            "The same.",
        ),
        Choice(
            "Probe",
            "INFERRED",
            "The model continues query and answer under the user role.",
            "Raw continuation after the chat template's user header, without any instruction to play a user.",
        ),
        Choice(
            "Prefix",
            "OURS",
            "Two forms of the context are legitimate; which one was used is not known.",
            f"{probe['prefix']}: "
            + (
                "query and answer as earlier turns of a longer conversation (templates drop thinking there)."
                if probe["prefix"] == "stripped"
                else "query and answer as the conversation's last turns, thinking kept, then the user header."
            ),
        ),
        Choice(
            "Models",
            "OURS",
            f"{PAPER_MODELS} open-weight models, Qwen3.5 0.8B to 397B among them.",
            f"{len(study['models'])}: {_names(study['models'])}.",
            differs=True,
        ),
        Choice(
            "Datasets",
            "OURS",
            f"{PAPER_DATASETS} datasets; GSM8K, HealthBench and CoVal are confirmed, IFBench and GPQA are inferred.",
            _dataset_facts(study, facts),
            differs=True,
        ),
        Choice(
            "Judge",
            "OURS",
            "gpt-5.4-mini, with human validation on a subset and limited agreement between judges.",
            f"{study['reported_judge']} ({reported['kind']}).",
            differs=True,
        ),
        Choice(
            "Labels",
            "OURS",
            "Failure modes named: restating the prompt, continuing as the assistant, meta-reasoning, generic "
            "or irrelevant turns.",
            "Those, with generic and unrelated apart, and degenerate for text that is no turn at all.",
        ),
        Choice(
            "Temperatures",
            "OURS",
            "Deterministic decoding and higher temperatures (confirmed); the grid is not known.",
            _temperatures(probe),
        ),
        Choice("Samples", "OURS", _NOT_KNOWN, f"{probe['samples']} an item at temperatures above 0, one at 0."),
        Choice("Sampling", "OURS", _NOT_KNOWN, _sampling(probe["sampling"])),
        Choice(
            "Assistant turns",
            "OURS",
            _NOT_KNOWN,
            f"Deterministic decoding, at most {study['assistant_turns']['max_tokens']} tokens.",
        ),
    ]
    for name, perturbation in probe["perturbations"].items():
        status, paper, here = _PERTURBATIONS[perturbation["kind"]]
        found.append(Choice(f"Perturbation: {name.replace('_', ' ')}", status, paper, here(perturbation)))
    found.append(
        Choice(
            "Intervals",
            "OURS",
            _NOT_KNOWN,
            f"{100 * statistics['level']:g} % intervals that allow for several samples an item; the "
            f"bootstrap over items ({statistics['resamples']} resamples) is always computed and shown beside "
            "them, because near 0 it is too narrow.",
        )
    )
    order: list[Status] = ["CONFIRMED", "INFERRED", "OURS"]
    return sorted(found, key=lambda choice: order.index(choice.status))


def published(study: Mapping[str, Any]) -> list[Published]:
    """Figures of the paper, each with the reason why it can or cannot be compared with this study."""
    qwen = [name for name in study["models"] if "qwen3.5" in name.lower()]
    if qwen:
        accuracy = f"Compare with {', '.join(qwen)} above, minding which items were chosen."
        rate = f"Compare with {', '.join(qwen)} above, minding that the judge and the items differ."
    else:
        accuracy = "Not comparable: this study probes none of the paper's models."
        rate = f"{accuracy} Another judge labels the turns besides."
    return [
        Published("GSM8K accuracy, Qwen3.5-0.8B to Qwen3.5-397B-A17B", "41 % to 96.8 %", accuracy, "gsm8k accuracy"),
        Published("Genuine-followup rate, Qwen3.5, deterministic decoding", "near zero", rate, "deterministic rates"),
        Published("Highest genuine-followup rate, higher temperature", "22 %", rate, "highest rate"),
    ]
