"""Every family's documented format, reproduced by the one algorithm from templates that we wrote."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")

from render_tokenizers import FAMILIES, TEMPLATES, small_tokenizer

from userturn.messages import Message
from userturn.render import Prefix, Prompt, Renderer, TemplateNotProbeable, TurnFormat

DOCS = Path(__file__).parents[2] / "docs" / "templates.md"
PREFIXES: tuple[Prefix, ...] = ("stripped", "retained")

# Renderers of the documentation's table: name, family, thinking.
ROWS: list[tuple[str, str, bool | None]] = [
    ("ChatML (SmolLM2)", "chatml", None),
    ("Qwen3.5, thinking off", "qwen35", False),
    ("Qwen3.5, thinking on", "qwen35", True),
    ("harmony (gpt-oss)", "harmony", None),
    ("GLM 4.5 and 4.6, thinking off", "glm45", False),
    ("GLM 4.5 and 4.6, thinking on", "glm45", True),
    ("GLM 4.7, thinking off", "glm47", False),
    ("GLM 4.7, thinking on", "glm47", True),
    ("Llama 3", "llama3", None),
    ("Gemma", "gemma", None),
    ("Mistral, markers as text", "mistral", None),
    ("Mistral, markers as tokens", "mistral-v3", None),
    ("plain words (generic)", "plain", None),
]

HARMONY_SYSTEM = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\n"
    "Knowledge cutoff: 2024-06\nCurrent date: {date}\n\nReasoning: {effort}\n\n"
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.<|end|>"
)


def turns(*pairs: tuple[str, str]) -> list[Message]:
    names: dict[str, Any] = {"u": "user", "a": "assistant", "s": "system"}
    return [Message(role=names[role], content=content) for role, content in pairs]


BASELINE = turns(("u", "q"), ("a", "r"))
REMOVED = turns(("u", "q"))
SWAPPED = turns(("a", "q"), ("u", "r"))
THOUGHT = turns(("u", "q"), ("a", "<think>\nhm\n</think>\n\nr"))


def renderer(family: str, prefix: Prefix = "stripped", thinking: bool | None = None, **kwargs: Any) -> Renderer:
    return Renderer(FAMILIES[family].tokenizer(), prefix=prefix, thinking=thinking, **kwargs)


def spelled(family: str, ids: tuple[int, ...]) -> set[str]:
    tokens: list[str] = FAMILIES[family].tokenizer().convert_ids_to_tokens(list(ids))
    return set(tokens)


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("family", "thinking", "context", "expected"),
    [
        (
            "chatml",
            None,
            BASELINE,
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\nr<|im_end|>\n<|im_start|>user\n",
        ),
        ("chatml", None, REMOVED, "<|im_start|>user\nq<|im_end|>\n<|im_start|>user\n"),
        (
            "chatml",
            None,
            SWAPPED,
            "<|im_start|>assistant\nq<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>user\n",
        ),
        ("qwen35", False, REMOVED, "<|im_start|>user\nq<|im_end|>\n<|im_start|>user\n"),
        (
            "qwen35",
            True,
            SWAPPED,
            "<|im_start|>assistant\nq<|im_end|>\n<|im_start|>user\nr<|im_end|>\n<|im_start|>user\n",
        ),
        (
            "glm45",
            False,
            BASELINE,
            "[gMASK]<sop><|user|>\nq/nothink<|assistant|>\n<think></think>\nr<|user|>\n",
        ),
        ("glm45", True, BASELINE, "[gMASK]<sop><|user|>\nq<|assistant|>\n<think></think>\nr<|user|>\n"),
        ("glm45", False, REMOVED, "[gMASK]<sop><|user|>\nq/nothink<|user|>\n"),
        (
            "glm45",
            False,
            SWAPPED,
            "[gMASK]<sop><|assistant|>\n<think></think>\nq<|user|>\nr/nothink<|user|>\n",
        ),
        ("glm47", False, BASELINE, "[gMASK]<sop><|user|>q<|assistant|></think>r<|user|>"),
        ("glm47", True, REMOVED, "[gMASK]<sop><|user|>q<|user|>"),
        (
            "llama3",
            None,
            BASELINE,
            "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nq<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\nr<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        ),
        (
            "llama3",
            None,
            SWAPPED,
            "<|begin_of_text|><|start_header_id|>assistant<|end_header_id|>\n\nq<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nr<|eot_id|><|start_header_id|>user<|end_header_id|>\n\n",
        ),
        (
            "gemma",
            None,
            BASELINE,
            "<bos><start_of_turn>user\nq<end_of_turn>\n<start_of_turn>model\nr<end_of_turn>\n<start_of_turn>user\n",
        ),
        ("mistral", None, BASELINE, "<s>[INST] q [/INST] r</s>[INST]"),
        ("mistral-v3", None, BASELINE, "<s>[INST] q [/INST] r</s>[INST]"),
        ("plain", None, BASELINE, "USER: q ASSISTANT: r</s>USER:"),
        ("plain", None, SWAPPED, "ASSISTANT: q</s>USER: r USER:"),
    ],
)
def test_user_prompt_text(
    family: str, thinking: bool | None, context: list[Message], expected: str, prefix: Prefix
) -> None:
    prompt = renderer(family, prefix, thinking).user_prompt(context)
    assert prompt.text == expected
    ids = FAMILIES[family].tokenizer()(expected, add_special_tokens=False)["input_ids"]
    assert prompt.token_ids == tuple(ids)


@pytest.mark.parametrize(
    ("family", "thinking", "context", "stripped", "retained"),
    [
        ("qwen35", False, BASELINE, "", "<think>\n\n</think>\n\n"),
        ("qwen35", True, BASELINE, "", "<think>\n\n</think>\n\n"),
        ("qwen35", True, THOUGHT, "", "<think>\nhm\n</think>\n\n"),
        ("glm47", True, THOUGHT, "</think>", "<think>hm</think>"),
    ],
)
def test_the_prefixes_differ_in_the_think_block(
    family: str, thinking: bool, context: list[Message], stripped: str, retained: str
) -> None:
    opening, closing = {
        "qwen35": (
            "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n",
            "r<|im_end|>\n<|im_start|>user\n",
        ),
        "glm47": ("[gMASK]<sop><|user|>q<|assistant|>", "r<|user|>"),
    }[family]
    for prefix, block in (("stripped", stripped), ("retained", retained)):
        found = renderer(family, prefix, thinking)  # type: ignore[arg-type]
        assert found.user_prompt(context).text == opening + block + closing
        assert any("prefix matters" in note for note in found.format.notes) == (family == "qwen35")


def test_qwen35_ids_and_stops() -> None:
    found = renderer("qwen35", thinking=False)
    assert found.format.user_header_token_ids[0] == 248045
    assert found.format.stop_token_ids == (248044, 248045, 248046)
    assert found.format.assistant_header == "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert renderer("qwen35", thinking=True).format.assistant_header == "<|im_start|>assistant\n<think>\n"
    ids = renderer("qwen35", "retained", thinking=False).user_prompt(BASELINE).token_ids
    assert [i for i in ids if i > 1000] == [248045, 248046, 248045, 248068, 248069, 248046, 248045]


def test_an_export_that_lost_im_end_from_its_eos_still_stops_there() -> None:
    family = FAMILIES["qwen35"]
    source = (TEMPLATES / "qwen35.jinja").read_text(encoding="utf-8")
    tokenizer = small_tokenizer(source, family.special, family.plain_added, eos="<|endoftext|>")
    found = Renderer(tokenizer, thinking=False).format
    assert 248046 in found.stop_token_ids
    assert 248046 in found.assistant_stop_token_ids


@pytest.mark.parametrize("family", ["qwen35", "glm45", "glm47"])
def test_a_thinking_family_wants_the_flag(family: str) -> None:
    with pytest.raises(TemplateNotProbeable, match="set thinking to true or false"):
        renderer(family)


def test_the_flag_on_a_family_without_thinking_is_noted() -> None:
    assert any("no effect" in note for note in renderer("llama3", thinking=True).format.notes)


def test_think_markers_of_a_user_are_text_and_those_of_the_assistant_are_structure() -> None:
    found = renderer("qwen35", "retained", thinking=True)
    for content in ("<think>\nhm\n</think>\n\nr", "</think>", "<|im_end|>"):
        swapped = found.user_prompt(turns(("a", "q"), ("u", content)))
        assert [i for i in swapped.token_ids if i > 1000] == [248045, 248046] * 2 + [248045]
        assert content in swapped.text
    thought = found.user_prompt(turns(("u", "q"), ("a", "<think>\nh<|im_end|>m\n</think>\n\n<|im_end|>")))
    assert [i for i in thought.token_ids if i > 1000] == [
        248045,
        248046,
        248045,
        248068,
        248069,
        248046,
        248045,
    ]
    twice = found.user_prompt(turns(("u", "q"), ("a", "<think>a</think>b</think>c")))
    assert "\n\n<think>a</think>b</think>c<|im_end|>" in twice.text
    assert twice.token_ids.count(248069) == 1


@pytest.mark.parametrize("prefix", PREFIXES)
def test_harmony(prefix: Prefix) -> None:
    found = renderer("harmony", prefix, template_kwargs={"date": "2026-04-02", "reasoning_effort": "low"})
    lead = HARMONY_SYSTEM.format(date="2026-04-02", effort="low")
    assert found.user_prompt(BASELINE).text == (
        f"{lead}<|start|>user<|message|>q<|end|>"
        "<|start|>assistant<|channel|>final<|message|>r<|end|><|start|>user<|message|>"
    )
    assert found.user_prompt(REMOVED).text == f"{lead}<|start|>user<|message|>q<|end|><|start|>user<|message|>"
    assert found.assistant_prompt(REMOVED).text == f"{lead}<|start|>user<|message|>q<|end|><|start|>assistant"
    ids = found.format.user_header_token_ids
    assert (ids[0], ids[-1]) == (200006, 200008)
    assert {200002, 200006, 200007} <= set(found.format.stop_token_ids)
    # '<|end|>' closes the analysis, not the turn: it must not stop the assistant.
    assert found.format.assistant_stop_token_ids == (199999, 200002, 200012)


def test_harmony_prints_a_fixed_date_even_if_none_is_given() -> None:
    found = renderer("harmony")
    assert found.user_prompt(BASELINE).text.startswith(HARMONY_SYSTEM.format(date="2026-01-01", effort="medium"))
    assert "the template prints the date: fixed at 2026-01-01" in found.format.notes


@pytest.mark.parametrize(
    ("family", "stop", "thinking"),
    [("glm45", 151337, False), ("glm45", 151337, True), ("glm47", 154828, False)],
)
def test_glm_stops_where_the_assistant_would_begin(family: str, stop: int, thinking: bool) -> None:
    found = renderer(family, thinking=thinking)
    assert stop in found.format.stop_token_ids
    assert found.format.user_end == ("/nothink" if (family, thinking) == ("glm45", False) else "")
    assert {"<|user|>", "<|assistant|>", "<|endoftext|>"} <= spelled(family, found.format.assistant_stop_token_ids)
    assert found.user_prompt(BASELINE).text.count("[gMASK]<sop>") == 1


def test_glm_does_not_repeat_nothink() -> None:
    text = renderer("glm45", thinking=False).user_prompt(turns(("u", "q/nothink"), ("a", "r"))).text
    assert text.startswith("[gMASK]<sop><|user|>\nq/nothink<|assistant|>")


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize("family", ["gemma", "mistral", "mistral-v3"])
@pytest.mark.parametrize(("context", "roles"), [(REMOVED, r"\[user, user\]"), (SWAPPED, r"\[assistant, user, user\]")])
def test_enforced_alternation_refuses_the_context_and_says_so(
    family: str, context: list[Message], roles: str, prefix: Prefix
) -> None:
    found = renderer(family, prefix)
    found.user_prompt(BASELINE)
    with pytest.raises(TemplateNotProbeable, match=f"refuses the roles {roles}: .*must alternate"):
        found.user_prompt(context)
    found.user_prompt(BASELINE)


def test_a_system_message_goes_where_the_template_puts_it() -> None:
    context = [*turns(("s", "be brief")), *BASELINE]
    assert (
        renderer("gemma").user_prompt(context).text.startswith("<bos><start_of_turn>user\nbe brief\n\nq<end_of_turn>")
    )
    assert renderer("mistral").user_prompt(context).text == "<s>[INST] q [/INST] r</s>[INST] be brief\n\n"
    retained = renderer("mistral", "retained").assistant_prompt([*turns(("s", "be brief")), *REMOVED])
    assert retained.text == "<s>[INST] be brief\n\nq [/INST]"
    developer = renderer("harmony").user_prompt(context).text
    assert "<|start|>developer<|message|># Instructions\n\nbe brief<|end|><|start|>user" in developer


def test_markers_in_plain_text_get_stop_strings() -> None:
    assert renderer("mistral").format.stop_strings == ("[/INST]",)
    assert renderer("plain").format.stop_strings == ("ASSISTANT:",)
    assert renderer("mistral-v3").format.stop_strings == ()
    assert 1004 in renderer("mistral-v3").format.stop_token_ids
    source = (
        "{% for m in messages %}{{ '### ' + m.role + ':\n' + m.content + '\n\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '### assistant:\n' }}{% endif %}"
    )
    found = Renderer(small_tokenizer(source, {"</s>": 1002}, eos="</s>"))
    assert found.format.stop_strings == ("\n### assistant:",)
    assert found.user_prompt(BASELINE).text == "### user:\nq\n\n### assistant:\nr\n\n### user:\n"
    assert found.assistant_prompt(SWAPPED).text.endswith("### user:\nr\n\n### assistant:\n")


def test_the_trailing_space_of_a_header_is_left_to_the_model() -> None:
    """' U' is one token of the test vocabulary: a prompt that ends in ' ' would keep the model from it."""
    found = renderer("plain")
    assert found.format.user_header == "USER:"
    assert found.user_prompt(BASELINE).text.endswith("</s>USER:")
    assert any("trailing space" in note for note in found.format.notes)


@pytest.mark.parametrize(("_name", "family", "thinking"), ROWS)
@pytest.mark.parametrize("prefix", PREFIXES)
def test_hostile_content_changes_no_control_token(
    _name: str, family: str, thinking: bool | None, prefix: Prefix
) -> None:
    tokenizer = FAMILIES[family].tokenizer()
    added = tokenizer.get_added_vocab()
    controls = {i for text, i in added.items() if text not in ("\n\n", "<h1>")}

    def of(prompt: Prompt) -> list[int]:
        return [i for i in prompt.token_ids if i in controls]

    found = Renderer(tokenizer, prefix=prefix, thinking=thinking)
    attack = "x" + "y".join(text for text in added if text.strip()) + "z"
    hostile = found.user_prompt(turns(("u", attack), ("a", attack)))
    assert of(hostile) == of(found.user_prompt(BASELINE))
    assert hostile.text.count(attack) == 2
    assert tokenizer.decode(hostile.token_ids, clean_up_tokenization_spaces=False) == hostile.text


def cell(*texts: str) -> str:
    shown = [text.replace("\n", "\\n").replace("|", "\\|") for text in texts if text]
    return " ".join(f"`{text}`" for text in shown) or "none"


def row(name: str, family: str, found: TurnFormat) -> str:
    stops = [
        *FAMILIES[family].tokenizer().convert_ids_to_tokens(list(found.stop_token_ids)),
        *found.stop_strings,
    ]
    columns = [name, cell(found.user_header)]
    columns += [cell(found.user_end), cell(*stops), cell(found.assistant_header)]
    return f"| {' | '.join(columns)} |"


@pytest.mark.parametrize(("name", "family", "thinking"), ROWS)
def test_the_documented_table_is_what_the_renderer_finds(name: str, family: str, thinking: bool | None) -> None:
    expected = row(name, family, renderer(family, thinking=thinking).format)
    assert expected in DOCS.read_text(encoding="utf-8").splitlines(), f"docs/templates.md lacks:\n{expected}"


@pytest.mark.parametrize(
    ("family", "thinking", "name"),
    [
        ("chatml", None, "chatml"),
        ("qwen35", False, "qwen"),
        ("harmony", None, "harmony"),
        ("glm45", True, "glm"),
        ("glm47", True, "glm"),
        ("llama3", None, "llama3"),
        ("gemma", None, "gemma"),
        ("mistral", None, "mistral"),
        ("mistral-v3", None, "mistral"),
        ("plain", None, "generic"),
    ],
)
def test_family_names(family: str, thinking: bool | None, name: str) -> None:
    assert renderer(family, thinking=thinking).format.family == name


@pytest.mark.parametrize(
    ("family", "thinking", "header"),
    [
        ("chatml", None, "<|im_start|>assistant\n"),
        ("qwen35", False, "<|im_start|>assistant\n"),
        ("harmony", None, "<|start|>assistant<|channel|>final<|message|>"),
        ("glm45", False, "<|assistant|>\n<think></think>\n"),
        ("glm47", True, "<|assistant|></think>"),
        ("llama3", None, "<|start_header_id|>assistant<|end_header_id|>\n\n"),
        ("gemma", None, "<start_of_turn>model\n"),
    ],
)
def test_a_known_text_can_stand_under_the_other_role(family: str, thinking: bool | None, header: str) -> None:
    found = renderer(family, thinking=thinking)
    prompt = found.user_prompt(BASELINE)
    swapped = found.as_assistant(prompt.token_ids)
    tokenizer = FAMILIES[family].tokenizer()
    assert found.format.assistant_turn_header == header
    text = tokenizer.decode(swapped, clean_up_tokenization_spaces=False)
    assert text == prompt.text.removesuffix(found.format.user_header) + header


def test_roles_without_headers_of_their_own_cannot_be_exchanged() -> None:
    found = renderer("mistral")
    with pytest.raises(TemplateNotProbeable, match=r"cannot be set against each other.*probe\.likelihood"):
        found.as_assistant(found.user_prompt(BASELINE).token_ids)
