"""Training tokens are probing tokens: for every template family, token by token."""

from __future__ import annotations

import pytest

pytest.importorskip("transformers")

from hypothesis import given
from hypothesis import strategies as st
from render_tokenizers import FAMILIES, assistant, system, user

from userturn.posttrain.masks import UNTRAINED, Masker, NotTrainable, TrainingRow
from userturn.render import Prefix, Renderer

#: Family, thinking: as in the tests of the renderer.
ROWS = [
    ("chatml", None),
    ("qwen35", False),
    ("qwen35", True),
    ("harmony", None),
    ("glm45", False),
    ("glm45", True),
    ("glm47", False),
    ("glm47", True),
    ("llama3", None),
    ("gemma", None),
    ("mistral", None),
    ("mistral-v3", None),
    ("plain", None),
]
TALK = [user("q one"), assistant("a one"), user("q two"), assistant("a two"), user("q three")]
PREFIXES: tuple[Prefix, ...] = ("stripped", "retained")

#: The trained tokens of the turn "q three" after TALK, spelled; the end token is part of them.
USER_TURN = {
    "chatml": "q three<|im_end|>",
    "qwen35": "q three<|im_end|>",
    "harmony": "q three<|end|>",
    "glm45": "q three<|assistant|>",
    "glm47": "q three<|assistant|>",
    "llama3": "q three<|eot_id|>",
    "gemma": "q three<end_of_turn>",
    "mistral": " q three",
    "mistral-v3": " q three[/INST]",
    "plain": " q three",
}
#: The trained tokens of the answer "a two".
ANSWER = {
    "chatml": "a two<|im_end|>",
    "qwen35": "a two<|im_end|>",
    "harmony": "<|channel|>final<|message|>a two",
    "llama3": "a two<|eot_id|>",
    "gemma": "a two<end_of_turn>",
    "mistral-v3": " a two</s>",
}


def masker(family: str, thinking: bool | None, prefix: Prefix = "stripped", most: int = 400, turn: int = 100) -> Masker:
    tokenizer = FAMILIES[family].tokenizer()
    return Masker(lambda p: Renderer(tokenizer, prefix=p, thinking=thinking), prefix, most, turn)


def spelled(family: str, ids: list[int] | tuple[int, ...]) -> str:
    return FAMILIES[family].tokenizer().decode(list(ids), skip_special_tokens=False)


def trained(row: TrainingRow) -> list[int]:
    return [label for label in row.labels if label != UNTRAINED]


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(("family", "thinking"), ROWS)
def test_a_user_turn_stands_after_the_very_tokens_of_the_probe(family, thinking, prefix):
    row = masker(family, thinking, prefix).row(TALK, 4)
    probe = Renderer(FAMILIES[family].tokenizer(), prefix=prefix, thinking=thinking)
    prompt = probe.user_prompt(TALK[:4]).token_ids
    assert tuple(row.input_ids[: len(prompt)]) == prompt
    assert row.labels[: len(prompt)] == [UNTRAINED] * len(prompt)
    assert row.labels[len(prompt) :] == row.input_ids[len(prompt) :]
    assert spelled(family, trained(row)).strip() == USER_TURN[family].strip()
    if row.ended:
        assert row.turn[-1] in probe.format.stop_token_ids
        assert not set(row.turn[:-1]) & set(probe.format.stop_token_ids)
    assert row.ended == (family not in {"mistral", "plain"})


@pytest.mark.parametrize(("family", "thinking"), ROWS)
def test_a_row_is_the_beginning_of_the_whole_conversation_as_the_template_writes_it(family, thinking):
    """Nothing between two tokens is lost: the rendered conversation with one more answer begins with the row."""
    row = masker(family, thinking).row(TALK, 4)
    whole = Renderer(FAMILIES[family].tokenizer(), thinking=thinking).assistant_prompt(TALK).token_ids
    shared = row.input_ids[: len(row.input_ids) - row.ended]
    assert spelled(family, whole).startswith(spelled(family, shared))
    # the small tokenizer of llama3 joins the header's line breaks only where no word follows
    if family != "llama3":
        assert list(whole[: len(shared)]) == shared


@pytest.mark.parametrize(("family", "thinking"), ROWS)
def test_an_answer_stands_after_the_assistants_own_prompt(family, thinking):
    row = masker(family, thinking).row(TALK, 3)
    renderer = Renderer(FAMILIES[family].tokenizer(), thinking=thinking)
    prompt = renderer.assistant_prompt(TALK[:3]).token_ids
    assert tuple(row.prompt) == prompt
    said = spelled(family, trained(row))
    assert "a two" in said and "q " not in said
    if family in ANSWER:
        assert said.removeprefix("<think>\n\n</think>\n\n") == ANSWER[family]
    if row.ended:
        assert row.turn[-1] in renderer.format.assistant_stop_token_ids


def test_the_end_of_a_cut_turn_is_not_trained():
    whole = masker("chatml", None).row(TALK, 4)
    cut = masker("chatml", None, turn=3).row(TALK, 4)
    assert cut.turn == whole.turn[:3]
    assert not cut.ended
    exact = masker("chatml", None, turn=len(whole.turn) - 1).row(TALK, 4)
    assert exact == whole


def test_the_earliest_exchanges_are_left_out_for_length_and_the_system_message_stays():
    talk = [system("be kind"), *TALK]
    whole = masker("chatml", None).row(talk, 5)
    short = masker("chatml", None, most=len(whole.input_ids) - 1).row(talk, 5)
    assert whole.left_out == 0
    assert short.left_out == 2
    prompt = Renderer(FAMILIES["chatml"].tokenizer()).user_prompt([talk[0], *talk[3:5]]).token_ids
    assert short.prompt == prompt
    with pytest.raises(NotTrainable, match="over 20 tokens without any earlier exchange"):
        masker("chatml", None, most=20).row(talk, 5)


def test_control_tokens_that_a_person_spelled_are_trained_as_text():
    talk = [user("q"), assistant("a"), user("end <|im_end|> now")]
    row = masker("chatml", None).row(talk, 2)
    assert list(row.turn).count(1002) == 1
    assert row.turn[-1] == 1002
    assert spelled("chatml", row.turn) == "end <|im_end|> now<|im_end|>"


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), min_size=1, max_size=40))
def test_any_words_are_trained_whole(words):
    text = words.strip()
    if not text:
        return
    row = masker("chatml", None).row([user("q"), assistant("a"), user(text)], 2)
    assert row.ended
    assert spelled("chatml", row.turn[:-1]) == text
