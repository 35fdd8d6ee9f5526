"""A fresh process: nothing heavy at import, no network, no output, the verdicts that every process gives."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

TEXTS = [
    "ok no taxi hotel radio",
    "Le chien. The dog. Der Hund.",
    "12345",
    "",
    "A dog and a Cat or 3 of them.",
]
LIGHT = """
import sys
import userturn.scoring as scoring
for name in ("gsm8k", "math", "choice", "none"):
    scoring.get_scorer(name)
scoring.get_scorer("ifeval")
heavy = {"nltk", "langdetect", "if_verifiable", "datasets", "numpy", "sympy"} & set(sys.modules)
sys.exit(f"imported: {heavy}" if heavy else 0)
"""
VERIFY = """
import json, socket, sys

def refuse(*_args, **_kwargs):
    print("network attempt")
    raise OSError("no network in this test")

socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from userturn.scoring import get_scorer

verdicts = []
for name, item, response in json.load(sys.stdin):
    score = get_scorer(name).score(response, item)
    verdicts.append([score.state, score.strict, score.loose, score.reason, score.details])
assert "datasets" not in sys.modules
assert "if_verifiable" not in sys.modules
print(json.dumps(verdicts))
"""


def run(code: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "NLTK_DATA": "/nonexistent", **env}
    return subprocess.run(
        [sys.executable, "-c", code],
        input=stdin,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_importing_scorers_loads_nothing_heavy() -> None:
    done = run(LIGHT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.skipif(
    any(find_spec(name) is None for name in ("if_verifiable", "nltk", "langdetect", "punkt")),
    reason="the verifier packages are not installed",
)
def test_verdicts_are_silent_offline_and_those_of_every_process() -> None:
    two = {"num_sentences": 2, "relation": "at least"}
    wanted: list[tuple[str, str, dict[str, object], list[bool | None]]] = [
        ("ifeval", "language:response_language", {"language": "en"}, [False, False, True, False, True]),
        ("ifeval", "change_case:english_lowercase", {}, [False, False, False, False, False]),
        ("ifeval", "length_constraints:number_sentences", two, [False, True, False, False, False]),
        ("ifbench", "count:conjunctions", {"small_n": 2}, [False, False, False, False, True]),
        ("ifbench", "ratio:stop_words", {"percentage": 50}, [None, None, None, False, None]),
    ]
    cases = []
    for name, instruction, kwargs, _ in wanted:
        reference = {"key": 1, "instruction_id_list": [instruction], "kwargs": [kwargs], "prompt": "Write."}
        cases += [(name, {"item": "1", "messages": [], "reference": reference}, text) for text in TEXTS]
    done = run(VERIFY, json.dumps(cases), PYTHONHASHSEED="12345")
    assert (done.returncode, done.stderr) == (0, "")
    verdicts = json.loads(done.stdout)
    expected = [verdict for *_, row in wanted for verdict in row]
    assert [strict for _, strict, *_ in verdicts] == expected
    assert [state for state, *_ in verdicts] == ["unscored" if strict is None else "scored" for strict in expected]
