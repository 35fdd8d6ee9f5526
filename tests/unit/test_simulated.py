from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from userturn import cli, grid, specs
from userturn.artefacts import jsonl_bytes, write_json
from userturn.config.default_study import DEFAULT_STUDY
from userturn.config.engine import EngineConfig, SimulatedTexts
from userturn.config.judging import JudgeOffline
from userturn.config.judging import SimulatedJudge as JudgeSection
from userturn.config.load import ConfigError, load_study, read_yaml, validate
from userturn.config.perturbations import CONTROLS
from userturn.datasets import READERS
from userturn.engine.generation import CellRequest, Generator, Prompted
from userturn.engine.interface import EngineError, Forced, Request, SamplingParameters
from userturn.engine.open import open_engine
from userturn.engine.simulated import SimulatedEngine
from userturn.engine.store import CellStore
from userturn.judges.labels import GENUINE, LABELS, Turn
from userturn.judges.simulated import SimulatedJudge
from userturn.plan import jobs, plan
from userturn.simulation.study import document, twin
from userturn.simulation.texts import MARKER, OPENERS, WORDS, compose, label_of

#: Of an engine with its defaults.
GOLDEN = (
    "SIMULATED why does that hold for the bench note 1.",
    11,
    "stop",
)
SIMULATED = EngineConfig(name="simulated", max_model_len=4096)


def engine(model: str = "m", **texts: float) -> SimulatedEngine:
    return SimulatedEngine(model, SIMULATED.model_copy(update={"simulated": SimulatedTexts(**texts)}))


def sampling(temperature: float = 1.0, max_tokens: int = 256) -> SamplingParameters:
    return SamplingParameters(temperature=temperature, max_tokens=max_tokens, stop_token_ids=(2,))


def texts(requests: list[Request], model: str = "m", **wanted: Any) -> list[str]:
    done = engine(model).generate(requests, [sampling(**wanted)] * len(requests), lambda _: None)
    return [one.text for one in done]


# --- the engine


def test_a_golden_text() -> None:
    (one,) = engine().generate([Request((1, 2, 3), 7)], [sampling(max_tokens=64)], lambda _: None)
    assert (one.text, one.n_tokens, one.finish_reason) == GOLDEN


def test_texts_depend_on_prompt_seed_temperature_and_model_alone() -> None:
    (usual,) = texts([Request((1, 2, 3), 7)])
    others = [
        texts([Request((1, 2, 4), 7)]),
        texts([Request((1, 2, 3), 8)]),
        texts([Request((1, 2, 3), 7)], temperature=0.7),
        texts([Request((1, 2, 3), 7)], model="n"),
    ]
    assert usual not in [text for (text,) in others]
    assert len({text for (text,) in others}) == len(others)
    assert texts([Request((1, 2, 3), None)], temperature=0.0) == texts([Request((1, 2, 3), None)], temperature=0.0)


@given(st.lists(st.tuples(st.lists(st.integers(0, 50000), max_size=5), st.integers(0, 3)), min_size=1, max_size=8))
def test_texts_do_not_depend_on_their_neighbours(asked: list[tuple[list[int], int]]) -> None:
    requests = [Request(tuple(prompt), seed) for prompt, seed in asked]
    together = texts(requests)
    assert together == [texts([request])[0] for request in requests]
    assert together == list(reversed(texts(list(reversed(requests)))))


@settings(max_examples=200)
@given(st.integers(1, 300), st.integers(0, 2**48 - 1), st.floats(0.05, 1.0))
def test_lengths_keep_to_the_limit(limit: int, seed: int, length: float) -> None:
    (one,) = engine(length=length).generate([Request((5,), seed)], [sampling(max_tokens=limit)], lambda _: None)
    words = one.text.split()
    assert words[0] == MARKER
    assert 1 <= one.n_tokens <= limit
    # the end of the turn is a token too
    assert len(words) == one.n_tokens - (one.finish_reason == "stop")
    assert one.finish_reason == "stop" or one.n_tokens == limit
    assert one.finish_reason == "length" or label_of(one.text) is not None


def test_lengths_and_labels_are_as_asked() -> None:
    requests = [Request((item, item + 1) * 150, seed) for item in range(1000) for seed in range(3)]
    done = engine(length=0.2, followups=0.4).generate(requests, [sampling(max_tokens=500)] * 3000, lambda _: None)
    assert sum(one.n_tokens for one in done) / len(done) == pytest.approx(100, rel=0.06)
    found = Counter(label_of(one.text) for one in done)
    assert set(found) == set(LABELS)
    shares = [Counter(label_of(text) for text in texts(requests[:900], model=f"m{n}"))[GENUINE] / 900 for n in range(6)]
    assert max(shares) - min(shares) > 0.05
    assert 0.05 < min(shares) < max(shares) < 0.8


def test_samples_of_an_item_are_more_alike_than_chance() -> None:
    requests = [Request((item,) * 300, seed) for item in range(300) for seed in range(4)]
    genuine = [label_of(text) == GENUINE for text in texts(requests)]
    by_item = [sum(genuine[i : i + 4]) / 4 for i in range(0, len(genuine), 4)]
    rate = sum(by_item) / len(by_item)
    variance = sum((one - rate) ** 2 for one in by_item) / len(by_item)
    assert variance > 1.3 * rate * (1 - rate) / 4


def test_a_prompt_that_does_not_fit_is_refused() -> None:
    with pytest.raises(EngineError, match="max_model_len = 4096"):
        engine().generate([Request((1,) * 4000, 1)], [sampling(max_tokens=97)], lambda _: None)


def test_log_likelihoods_are_made_up_but_possible() -> None:
    asked = [Forced((prompt,), tuple(range(n))) for prompt in range(20) for n in range(1, 5)]
    found = engine().log_likelihoods(asked, lambda _: None)
    assert found == engine().log_likelihoods(asked, lambda _: None)
    assert len(set(found)) == len(asked)
    assert all(
        -4 * len(one.text_token_ids) <= value <= -len(one.text_token_ids)
        for one, value in zip(asked, found, strict=True)
    )
    assert engine().log_likelihoods([Forced((1,), ())], lambda _: None) == [0.0]


def test_nothing_heavy_is_imported(root: Path) -> None:
    script = (
        "import sys, userturn.engine.simulated, userturn.judges.simulated\n"
        "print([name for name in ('torch', 'vllm', 'transformers', 'numpy', 'pandas') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_cells_are_stored_under_what_the_engine_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(Path("data/models/m/model.json"), {"weights_sha256": "0" * 64})
    opened = open_engine("m", SIMULATED, None, threads=1, lock_sha256="a")
    # the page and the manifests tell a simulated study by this
    assert opened.facts["name"] == "simulated"
    assert opened.identity == open_engine("m", SIMULATED, None, threads=2, lock_sha256="b").identity
    request = CellRequest("m/d/baseline/t1.0", (Prompted("i", (1, 2)), Prompted("j", (3,))), 3, sampling(), 5)

    def written() -> tuple[bytes, list[str]]:
        generator = Generator(opened.load, CellStore(tmp_path / "cells"), opened.identity)
        (rows,) = generator.cells([request], lambda _: None)
        return jsonl_bytes(rows), generator.generated

    first, again = written(), written()
    assert (first[0], first[1], again[1]) == (again[0], [request.key], [])
    assert first[0].count(b'"text":"SIMULATED ') == 6


# --- texts


def test_texts_tell_what_they_were_written_for() -> None:
    assert len(set(WORDS)) == 256
    assert set(OPENERS) == set(LABELS)
    for label, openers in OPENERS.items():
        for opener in openers:
            assert label_of(compose(opener, bytes(9), "note 1.", 50)) == label
            assert label_of(opener) is None
    assert label_of("") is None
    assert label_of(f"{MARKER} could you") is None


# --- the judge


def turn(text: str, query: str = "q", answer: str | None = "a") -> Turn:
    return Turn(query, answer, text, "stop")


def test_without_errors_a_text_gets_the_label_it_was_written_for() -> None:
    judge = SimulatedJudge("j", JudgeSection(wrong=0.0, unscored=0.0))
    for label, openers in OPENERS.items():
        (found,) = judge.judge([turn(compose(openers[0], b"", "note 1.", 50))])
        assert (found.state, found.label) == ("scored", label)
        assert found.rationale.startswith("SIMULATED")
    others = {"": "degenerate", "q": "restates_prompt", "Is it?": GENUINE, "It is.": "continues_as_assistant"}
    assert {text: judge.judge([turn(text)])[0].label for text in others} == others


def test_errors_are_as_frequent_as_asked_and_each_judge_makes_its_own() -> None:
    config = JudgeSection(wrong=0.2, unscored=0.1)
    turns = [turn(compose(OPENERS[GENUINE][0], bytes([n % 256, n // 256]), "note 1.", 50)) for n in range(3000)]
    one, other = (SimulatedJudge(name, config).judge(turns) for name in ("one", "other"))
    assert one == SimulatedJudge("one", config).judge(turns)
    assert sum(found.state == "unscored" for found in one) / 3000 == pytest.approx(0.1, abs=0.02)
    wrong = [found.label not in {None, GENUINE} for found in one]
    assert sum(wrong) / 3000 == pytest.approx(0.2, abs=0.03)
    assert {found.label for found in one} == {None, *LABELS}
    both = sum(w and found.label not in {None, GENUINE} for w, found in zip(wrong, other, strict=True)) / 3000
    assert both == pytest.approx(0.2 * 0.2, abs=0.02)


# --- the config


def test_specs_and_keys_of_real_engines_know_nothing_of_simulations() -> None:
    assert "simulated" not in EngineConfig().model_dump(mode="json")
    dumped = EngineConfig(name="simulated", simulated=SimulatedTexts(length=0.5)).model_dump(mode="json")
    assert EngineConfig.model_validate(dumped).simulated == SimulatedTexts(length=0.5)


def changed(**sections: Any) -> dict[str, Any]:
    return {**deepcopy(DEFAULT_STUDY), **sections}


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            changed(judges={"j": {"kind": "simulated"}}, reported_judge="j"),
            "judges.j.kind: 'simulated' makes labels up, and engine.name is 'vllm'",
        ),
        (changed(engine={"simulated": {"length": 0.5}}), "simulated: without effect, since name is 'vllm'"),
        (changed(engine={"name": "simulated", "simulated": {"length": 0}}), "engine.simulated.length"),
        (changed(engine={"name": "other"}), "'vllm' or 'simulated' (given: 'other')"),
    ],
)
def test_what_would_pass_as_real_is_refused(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        validate(config)
    assert said in str(error.value)


def test_endpoints_and_judges_stay_real() -> None:
    endpoint = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}
    config = changed(engine={"name": "simulated"})
    config["probe"]["likelihood"] = None
    config["models"] = {"m": {"source": next(iter(DEFAULT_STUDY["models"].values()))["source"], "endpoint": endpoint}}
    with pytest.raises(ConfigError, match=r"an endpoint serves it, but engine\.name is 'simulated'"):
        validate(config)
    with pytest.raises(ValueError, match="a judge is run by 'vllm'"):
        JudgeOffline.model_validate(
            {"kind": "offline", "source": config["models"]["m"]["source"], "engine": {"name": "simulated"}}
        )


# --- the twin


@pytest.fixture(scope="module")
def paper(root: Path) -> dict[str, Any]:
    return read_yaml(root / "config/paper.yaml")


def test_the_twin_of_the_paper_has_not_drifted(root: Path, paper: dict[str, Any]) -> None:
    made = document(twin(paper, 500).config, "paper.yaml", "userturn config simulate config/paper.yaml")
    assert (root / "config/paper-simulated.yaml").read_text("utf-8") == made, (
        "run `userturn config simulate config/paper.yaml` in a scratch folder with a copy of config/"
    )


def test_the_twin_has_the_grid_of_its_study(paper: dict[str, Any]) -> None:
    study, made = validate(paper), twin(paper, 12)
    simulated = validate(made.config)
    assert grid.cells(simulated) == grid.cells(study)
    assert (simulated.engine.shard_by, simulated.statistics) == (study.engine.shard_by, study.statistics)
    assert list(simulated.judges) == list(study.judges)
    assert grid.converted(simulated) == []
    assert '"weights":false' in specs.model(simulated, "gpt-oss-20b")
    for name, source in ((n, d.source) for n, d in simulated.datasets.items()):
        items = READERS["own"].read(made.files[Path(source.path)])
        assert len(items) == 12
        assert all(item["messages"][-1]["content"].startswith(MARKER) for item in items)
        followed = [item for item in items if item["meta"].get("human_followup")]
        assert len(followed) == (0 if READERS[study.datasets[name].reader].scorer != "none" else 6)
        assert all(label_of(item["meta"]["human_followup"]) == GENUINE for item in followed)


def test_ten_times_the_models_are_ten_times_the_cells_and_the_paper_takes_few_jobs(paper: dict[str, Any]) -> None:
    once, ten = (validate(twin(paper, 12, times).config) for times in (1, 10))
    assert len(grid.cells(ten)) == 10 * len(grid.cells(once)) == 10 * 11 * 5 * 22
    assert sum(jobs(once).values()) <= 500
    assert jobs(once)["model_folder"] == 11
    made = plan(once)
    generated = [c for c in grid.cells(once) if once.probe.perturbations[c.perturbation].kind not in CONTROLS]
    assert made.simulated
    assert made.tokens.prompts == 12 * (sum(cell.samples for cell in generated) + 11 * 5)


def test_the_command_writes_config_and_items_and_the_plan_says_simulated(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "study.yaml").write_text((root / "config/paper.yaml").read_text("utf-8"), encoding="utf-8")
    (tmp_path / "gold").symlink_to(root / "gold")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["config", "simulate", "study.yaml", "--items", "5", "--times", "2"]) == 0
    said = capsys.readouterr().out.split()
    assert said[-1] == "study-simulated.yaml"
    assert sorted(said[:-1]) == sorted(
        f"data/simulated/{name}.jsonl" for name in load_study([Path("study.yaml")]).datasets
    )
    written = Path("study-simulated.yaml").read_text("utf-8")
    assert "userturn config simulate study.yaml --items 5 --times 2\n" in written
    assert cli.main(["config", "check", "study-simulated.yaml"]) == 0
    assert "2420 cells in 110 shards" in capsys.readouterr().out
    assert cli.main(["plan", "--configfile", "study-simulated.yaml"]) == 0
    assert "(SIMULATED: a program makes the texts up)" in capsys.readouterr().out.split("\n")[0]
    assert cli.main(["config", "simulate", "study.yaml", "--items", "1"]) == 1
    assert "at least 2 items" in capsys.readouterr().err
