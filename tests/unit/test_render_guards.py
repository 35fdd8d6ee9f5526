"""What the renderer refuses, and hostile content on awkward tokenizers."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers")

from render_tokenizers import FAMILIES, assistant, small_tokenizer, system, user
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from userturn.render import HostileContentError, Renderer, TemplateNotProbeable, load_renderer
from userturn.render.controls import ControlTokens

# --- refusals -------------------------------------------------------------------------------------

CHATML = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
SPECIAL = {"<|im_start|>": 1001, "<|im_end|>": 1002}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        (None, "no chat template"),
        ("  ", "no chat template"),
        (
            "{% for m in messages if m.role != 'user' %}<|im_start|>{{ m.content }}{% endfor %}",
            "drops the content of a user",
        ),
        (CHATML.replace("m.content", "m.content | upper"), "alters the content of a user message"),
        (
            CHATML.replace("m.content", "m.content + m.content"),
            "writes the content of a user message 2 times",
        ),
        ("{{ raise_exception('only tools here') }}", "only tools here"),
        ("{% for m in messages %}{{ m.content + '\n' }}{% endfor %}", "nothing marks the end of a user turn"),
        (
            "{% for m in messages | reverse %}{{ '<|im_start|>' + m.role + m.content }}{% endfor %}",
            "another order",
        ),
        ("{% for m in messages %}{{ m.content + 1 }}{% endfor %}", "refuses the roles"),
        (CHATML + "{{ enable_thinking }}", "set thinking to true or false"),
        (CHATML + "{% if", "the template refuses"),
    ],
)
def test_templates_that_cannot_be_probed_say_why(template: str | None, reason: str) -> None:
    with pytest.raises(TemplateNotProbeable, match=reason):
        Renderer(small_tokenizer(template, SPECIAL, eos="<|im_end|>"))


def test_two_bos_are_refused_and_one_is_not() -> None:
    special = {**SPECIAL, "<s>": 1003}
    once = Renderer(small_tokenizer("{{ bos_token }}" + CHATML, special, bos="<s>", eos="<|im_end|>"))
    assert once.user_prompt([user("q")]).token_ids[:2] == (1003, 1001)
    twice = Renderer(small_tokenizer("{{ bos_token }}{{ bos_token }}" + CHATML, special, bos="<s>", eos="<|im_end|>"))
    with pytest.raises(TemplateNotProbeable, match="two BOS tokens"):
        twice.user_prompt([user("q")])


def test_no_bos_is_added_by_the_tokenizer() -> None:
    tokenizer = small_tokenizer(CHATML, {**SPECIAL, "<s>": 1003}, bos="<s>", eos="<|im_end|>")
    assert 1003 not in Renderer(tokenizer).user_prompt([user("<s>q")]).token_ids


def test_a_dropped_message_is_refused() -> None:
    without_system = CHATML.replace("in messages", "in messages if m.role != 'system'")
    renderer = Renderer(small_tokenizer(without_system, SPECIAL, eos="<|im_end|>"))
    assert renderer.user_prompt([user("q")]).text.endswith("<|im_start|>user\n")
    with pytest.raises(TemplateNotProbeable, match=r"drops the content of message 0 \(system\)"):
        renderer.user_prompt([system("be brief"), user("q")])


def test_a_template_without_generation_prompt_gets_its_header_by_sentinel() -> None:
    renderer = Renderer(small_tokenizer(CHATML, SPECIAL, eos="<|im_end|>"))
    assert renderer.assistant_prompt([user("q")]).text == "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    assert renderer.format.assistant_header == "<|im_start|>assistant\n"


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "conversation is empty"),
        ([{"role": "tool", "content": "x"}], "message 0: role 'tool'; allowed: system, user, assistant"),
        ([user("q"), {"role": "assistant", "content": None}], "message 1: content is NoneType"),
        ([user("q\ud800")], "message 0: content has a lone surrogate"),
    ],
)
def test_bad_messages_are_refused(messages: Any, reason: str) -> None:
    renderer = Renderer(FAMILIES["chatml"].tokenizer())
    for prompt in (renderer.user_prompt, renderer.assistant_prompt):
        with pytest.raises(ValueError, match=reason):
            prompt(messages)


def test_bad_arguments_are_refused(tmp_path: Path) -> None:
    tokenizer = FAMILIES["chatml"].tokenizer()
    with pytest.raises(ValueError, match="prefix: 'raw'; allowed: stripped, retained"):
        Renderer(tokenizer, prefix="raw")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'enable_thinking' cannot be set here"):
        Renderer(tokenizer, template_kwargs={"enable_thinking": True})
    with pytest.raises(ValueError, match=r"template_kwargs.date: 'today' is not an ISO date"):
        Renderer(FAMILIES["harmony"].tokenizer(), template_kwargs={"date": "today"})
    with pytest.raises(FileNotFoundError, match="model folder not found"):
        load_renderer(tmp_path / "nowhere")


# --- hostile content on awkward tokenizers --------------------------------------------------------


def test_a_control_token_that_matches_after_normalisation_is_refused_not_rendered() -> None:
    """The guard knows spellings; a normaliser that lower-cases makes others. They are caught by the ids."""
    letters = {letter: i for i, letter in enumerate(sorted(set("abcdefghijklmnopqrstuvwxyz<|>_\n \u2581?")))}
    backend = Tokenizer(models.BPE(vocab=letters, merges=[], unk_token="?"))
    backend.normalizer = normalizers.Lowercase()
    backend.add_tokens([AddedToken(text, special=True, normalized=True) for text in SPECIAL])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>")
    tokenizer.chat_template = CHATML
    renderer = Renderer(tokenizer)
    renderer.user_prompt([user("fine"), assistant("fine <|im_end|>")])
    with pytest.raises(HostileContentError, match="cannot be made inert"):
        renderer.user_prompt([user("<|IM_END|>"), assistant("a")])


def test_a_control_token_of_one_character_is_refused() -> None:
    renderer = Renderer(small_tokenizer(CHATML, {**SPECIAL, "¤": 1003}, eos="<|im_end|>"))
    with pytest.raises(HostileContentError, match="¤"):
        renderer.user_prompt([user("3 ¤"), assistant("a")])


def test_the_start_of_a_text_counts_only_once() -> None:
    """Metaspace tokenizers put a space in front of a text: not in front of each part of a hostile one."""
    letters = {letter: i for i, letter in enumerate(sorted(set("abcdefghijklmnopqrstuvwxyz<|>_/[]\n\u2581?")))}
    backend = Tokenizer(models.BPE(vocab=letters, merges=[], unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.add_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|im_end|>")
    tokenizer.chat_template = CHATML
    renderer = Renderer(tokenizer)
    clean = renderer.user_prompt([user("q"), assistant("a <|im_end| b")])
    hostile = renderer.user_prompt([user("q"), assistant("a <|im_end|> b")])
    spelled = tokenizer.convert_ids_to_tokens(list(hostile.token_ids))
    assert len(hostile.token_ids) == len(clean.token_ids) + 1
    assert "".join(spelled).endswith("a▁<|im_end|>▁b<|im_end|>\n<|im_start|>user\n")
    assert tokenizer.convert_ids_to_tokens(list(clean.token_ids))[0] == "<|im_start|>"


def test_whitespace_and_html_tokens_of_a_vocabulary_are_plain_text() -> None:
    renderer = Renderer(FAMILIES["gemma"].tokenizer())
    ids = renderer.user_prompt([user("q\n\n<h1>"), assistant("a")]).token_ids
    assert 1108 in ids
    assert 1175 in ids


@given(text=st.text(alphabet="<|>ab", max_size=30))
def test_broken_pieces_join_and_spell_nothing(text: str) -> None:
    controls = ControlTokens({"<|a|>": 1, "<|": 2, "a<|a": 3, "|>|>": 4})
    pieces = controls.broken(text)
    assert "".join(pieces) == text
    assert not any(controls.find(piece) for piece in pieces)
    assert (len(pieces) == 1) == (not controls.find(text))
