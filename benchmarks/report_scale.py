"""The report at paper size: how long it takes to build, how large it is, how fast it opens and finds a turn.

Writes made-up artefacts of 11 models, 5 datasets and 22 cells each (1.1 million user turns, two judges) into a
folder, runs the report's stage on them and opens the page in Chromium:

    python benchmarks/report_scale.py FOLDER [--items 240] [--only artefacts|build|open]

The folder takes about 2.5 GB. Words follow Zipf's law, so that the index of words is as large as for real texts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from userturn import grid, layout, specs
from userturn.artefacts import Row, write_json, write_jsonl
from userturn.config.study import Study
from userturn.judges.labels import LABELS

MODELS = [f"made-up-{n:02d}" for n in range(11)]
DATASETS = ["gsm8k", "ifbench", "gpqa-like", "healthbench", "coval"]
SAMPLES = 5
_SOURCE = {"kind": "file", "path": "made-up", "sha256": "0" * 64}


def study(items: int) -> Study:
    """The paper's grid: 22 cells a model and dataset."""
    four, three = [0.0, 0.5, 0.7, 1.0], [0.0, 0.7, 1.0]
    return Study.model_validate(
        {
            "name": "paper-size",
            "seed": 1,
            "models": {name: {"source": _SOURCE} for name in MODELS},
            "datasets": {name: {"source": _SOURCE, "reader": "gsm8k", "n_items": items} for name in DATASETS},
            "probe": {
                "samples": SAMPLES,
                "perturbations": {
                    "baseline": {"kind": "baseline", "temperatures": four},
                    "shuffled_context": {"kind": "shuffled_context", "temperatures": four},
                    "removed_assistant": {"kind": "removed_assistant", "temperatures": four},
                    "swapped_roles": {"kind": "swapped_roles", "temperatures": four},
                    "truncated_assistant": {"kind": "truncated_assistant", "temperatures": three, "fraction": 0.5},
                    "appended_question": {"kind": "appended_question", "temperatures": three, "question": "More?"},
                },
            },
            "judges": {name: {"kind": "provisional", "embedder": _SOURCE} for name in ("reported", "other")},
            "reported_judge": "reported",
        }
    )


class Texts:
    """Made-up sentences."""

    def __init__(self, rng: random.Random, words: int = 60_000, sentences: int = 40_000) -> None:
        vocabulary = ["".join(rng.choices("abcdefghiklmnoprstuvwy", k=rng.randint(2, 10))) for _ in range(words)]
        weights = [1 / (rank + 3) for rank in range(words)]
        drawn = iter(rng.choices(vocabulary, weights, k=14 * sentences))
        self._pool = [" ".join(next(drawn) for _ in range(rng.randint(6, 14))) + "." for _ in range(sentences)]
        self._rng = rng

    def __call__(self, sentences: int) -> str:
        """So many sentences."""
        return " ".join(self._rng.choices(self._pool, k=sentences))


def number(number_id: str, labels: dict[str, Any], k: int, n: int, sources: list[str], **over: Any) -> Row:
    """A row of ``numbers.jsonl`` with a made-up interval."""
    value = k / n
    return {
        "id": number_id, "quantity": number_id.partition("/")[0], "labels": {**labels, "judge": "reported"},
        "value": value, "low": max(0.0, value - 0.03), "high": min(1.0, value + 0.03), "level": 0.95,
        "method": "modified Wilson on n_eff", "bounds": [value, value], "n": n, "n_items": n // SAMPLES, "k": k,
        "bootstrap": {"low": value, "high": value, "method": "item bootstrap (percentile)"}, "n_unscored": 0,
        "p_value": None, "p_adjusted": None, "test": None, "family": None, "unit": "proportion", "decimals": 3,
        "seed": 1, "resamples": 10_000, "sources": sources, "selector": {"column": "label"}, "notes": [], **over,
    }  # fmt: skip


def cell_numbers(cell: grid.Cell, counts: dict[str, int]) -> Iterator[Row]:
    """The numbers of a cell."""
    n = sum(counts.values())
    here = {key: getattr(cell, key) for key in ("model", "dataset", "perturbation", "temperature")}
    sources = [cell.judgements("reported").as_posix()]
    yield number(f"followup_rate/{cell.key}", here, counts["genuine_followup"], n, sources)
    yield number(f"unscored_rate/{cell.key}", here, 0, n, sources)
    yield number(f"corrected_rate/{cell.key}", here, counts["genuine_followup"], n, sources)
    for label in LABELS:
        yield number(f"label_share/{cell.key}/{label}", {**here, "label": label}, counts[label], n, sources)
    if cell.perturbation != "baseline" and cell.temperature != 0.5:
        for quantity in ("effect", "effect_ratio", "corrected_effect"):
            yield number(
                f"{quantity}/{cell.key}", here, 1, n, sources, unit="difference of proportions", p_value=0.03,
                p_adjusted=0.2, test="exact sign-flip permutation", family="perturbations",
            )  # fmt: skip


def artefacts(config: Study) -> None:
    """Writes everything that the report's stage reads, into the current folder."""
    rng = random.Random(1)
    texts = Texts(rng)
    numbers: list[Row] = []
    evidence = {"rule": "classifier", "probability": {label: round(1 / 7, 4) for label in LABELS}}
    for model in config.models:
        write_json(layout.model(model), {"origin": _SOURCE, "weights_sha256": "0" * 64})
        for dataset in config.datasets:
            items = [f"{dataset}-{n:04d}" for n in range(config.datasets[dataset].n_items or 0)]
            queries = {item: texts(4) for item in items}
            answers = {item: texts(10) for item in items}
            counted = {"n_prompt_tokens": 60, "n_tokens": 150, "finish_reason": "stop", "sample": 0, "seed": None}
            write_jsonl(
                layout.assistant_turns(model, dataset),
                ({"item": item, "text": answers[item], "prompt": queries[item], **counted} for item in items),
            )
            right = {"state": "scored", "extracted": "4", "reason": "number", "strict": True, "loose": True}
            write_jsonl(
                layout.scores(model, dataset),
                ({"item": item, "correct": n % 2 == 0, **right} for n, item in enumerate(items)),
            )
            numbers.append(
                number(
                    f"accuracy/{model}/{dataset}", {"model": model, "dataset": dataset}, len(items) // 2, len(items),
                    [layout.scores(model, dataset).as_posix()],
                )
            )  # fmt: skip
            for name in config.probe.perturbations:
                write_jsonl(
                    layout.contexts(model, dataset, name),
                    (
                        {
                            "item": item,
                            "messages": [
                                {"role": "user", "content": queries[item]},
                                {"role": "assistant", "content": answers[item]},
                            ],
                            "changes": {},
                            "prompt": f"<|im_start|>user\n{queries[item]}<|im_end|>\n<|im_start|>assistant\n"
                            f"{answers[item]}<|im_end|>\n<|im_start|>user\n",
                            "prompt_token_ids": list(range(250)),
                            "shown_answer": answers[item],
                            "user_turn": None,
                        }
                        for item in items
                    ),
                )
            for cell in grid.cells_of(config, grid.Shard(model, (dataset,), (model,))):
                counts = dict.fromkeys(LABELS, 0)
                turns, judged, others = [], [], []
                for item in items:
                    for sample in range(cell.samples):
                        rare = f" {model} {cell.perturbation} x{rng.getrandbits(40):010x}"
                        turns.append(
                            {"item": item, "sample": sample, "text": texts(rng.randint(1, 3)) + rare, "seed": 1,
                             "finish_reason": "stop", "n_prompt_tokens": 250, "n_tokens": 40}
                        )  # fmt: skip
                        label, other = rng.choices(LABELS, k=2)
                        counts[label] += 1
                        row = {"item": item, "sample": sample, "state": "scored", "rationale": "It is most likely.",
                               "evidence": evidence}  # fmt: skip
                        judged.append(row | {"label": label})
                        others.append(row | {"label": other, "evidence": {"rule": "asks", "similarity": 0.25}})
                write_jsonl(cell.user_turns, turns)
                write_jsonl(cell.judgements("reported"), judged)
                write_jsonl(cell.judgements("other"), others)
                numbers += cell_numbers(cell, counts)
        print(f"{model}: {len(numbers)} numbers", flush=True)
    write_jsonl(layout.NUMBERS, numbers)
    job = {"packages": {"vllm": "0"}, "lock": None, "code": {"digest": "0"}}
    write_json(layout.manifest("analyse"), job | {"facts": {"exclusions": []}})
    for shard in grid.shards(config):
        write_json(
            layout.manifest("user_turns", *shard.name),
            job | {"facts": {"template": {"family": "chatml"}, "engine": {"name": "simulated"}}},
        )
        for judge in config.judges:
            judge_facts = {"judge": {"version": "1", "provisional": True}}
            write_json(layout.manifest("judge", judge, *shard.name), job | {"facts": judge_facts})
    for dataset in config.datasets:
        reader = {"licence": "none", "description": "Made up.", "scorer": "gsm8k"}
        about = {"source": _SOURCE, "n_items": 1, "n_available": 1, "reader": reader}
        write_json(layout.manifest("dataset", dataset), {"facts": about})


def build(config: Study) -> None:
    """Runs the report's stage; prints seconds and memory."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "userturn.stages.report", "--spec", specs.report(config), "--threads", "2"]
    subprocess.run([*command, "--manifest", layout.manifest("report").as_posix()], check=True)
    seconds = time.perf_counter() - started
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    files = list(layout.REPORT_FILES.iterdir())
    print(
        json.dumps(
            {
                "build seconds": round(seconds, 1),
                "processor seconds": round(usage.ru_utime + usage.ru_stime, 1),
                "largest process, GB": round(usage.ru_maxrss / 1e6, 2),
                "page, MB": round(layout.REPORT.stat().st_size / 1e6, 2),
                "files": len(files),
                "files, MB": round(sum(path.stat().st_size for path in files) / 1e6, 1),
            }
        )
    )


def status(pattern: str) -> str:
    """Whether the line above the transcripts fits a pattern."""
    return f"() => /{pattern}/.test(document.getElementById('shown').textContent)"


def typed(text: str) -> str:
    """Starts a search for these words in all transcripts."""
    return (
        "document.getElementById('filters').querySelectorAll('select, input').forEach((one) => { one.value = ''; });"
        f"document.getElementById('search').value = {json.dumps(text)};"
        "document.getElementById('filters').dispatchEvent(new Event('input'));"
    )


def go(target: str) -> str:
    """Follows a link within the page."""
    return f"() => {{ location.hash = {json.dumps(target)}; }}"


def opened() -> None:
    """Opens the page in Chromium and looks for turns; prints seconds."""
    from playwright.sync_api import sync_playwright

    cell = f"results/user_turns/{MODELS[7]}/{DATASETS[3]}/swapped_roles/t0.7.jsonl"
    row = json.loads(Path(cell).read_text().splitlines()[-1])
    rare = row["text"].split()[-1]
    address = layout.REPORT.resolve().as_uri()
    said: list[str] = []
    found: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        started = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("#turns .turn")
        page.wait_for_function(status("first 30 shown"))
        found["opens, with first transcripts"] = time.perf_counter() - started
        timing = (
            "() => { const n = performance.getEntriesByType('navigation')[0]; const p = performance.getEntriesByName("
        )
        timing += "'first-contentful-paint')[0]; return [p.startTime, n.domInteractive, n.loadEventEnd]; }"
        paint, interactive, loaded = page.evaluate(timing)
        found |= {"first paint": paint / 1e3, "interactive": interactive / 1e3, "loaded": loaded / 1e3}

        def timed(name: str, act: str, until: str) -> None:
            begun = time.perf_counter()
            page.evaluate(act)
            page.wait_for_function(until)
            found[name] = time.perf_counter() - begun
            page.keyboard.press("Escape")
            page.evaluate(f"() => {{ {typed('')} }}")
            page.wait_for_function(status("first 30 shown"))

        timed("a rare word", f"() => {{ {typed(rare)} }}", status("^1 of"))
        two = " ".join(row["text"].split()[:2])
        timed("two words", f"() => {{ {typed(two)} }}", status("^(the first|[0-9,]+ of [0-9,]+ user turns$)"))
        place = f"{MODELS[7]}/{DATASETS[3]}"
        item = f"#item/{place}/{row['item']}/swapped_roles/t0.7/{row['sample']}"
        timed("an item by its link", go(item), "() => document.querySelector('#panel .cards .body')")
        rows = "() => document.querySelector('#panel .rows .turn')"
        timed("a number's panel", go(f"#number/followup_rate/{MODELS[4]}/{DATASETS[1]}/baseline/t1.0"), rows)
        cell = f"() => document.querySelector('#turns .where')?.textContent.startsWith('{MODELS[9]} · {DATASETS[4]}')"
        timed("a cell by its link", go(f"#cell/{MODELS[9]}/{DATASETS[4]}/baseline/t1.0"), cell)
        browser.close()
    print(json.dumps({name: round(seconds, 2) for name, seconds in found.items()}), said)


def main() -> None:
    """Runs the parts that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--items", type=int, default=240, help="items of each dataset")
    parser.add_argument("--only", choices=["artefacts", "build", "open"], action="append")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(arguments.folder)
    config = study(arguments.items)
    parts = arguments.only or ["artefacts", "build", "open"]
    if "artefacts" in parts:
        artefacts(config)
    if "build" in parts:
        build(config)
    if "open" in parts:
        opened()


if __name__ == "__main__":
    main()
