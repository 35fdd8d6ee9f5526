"""Finds out, with sentinels, how a chat template writes turns."""

from collections.abc import Sequence
from dataclasses import dataclass

from userturn.messages import Message, Role
from userturn.render.controls import ControlTokens, Encoder
from userturn.render.template import Template, position
from userturn.render.types import TemplateNotProbeable, TurnFormat

# Spellings that never stand inside a turn, whatever the tokenizer's eos is.
_ALWAYS_STOP = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<eos>",
    "</s>",
    "<|return|>",
    "<|call|>",
    "<|eom_id|>",
    "<|system|>",
    "<|observation|>",
)

_FAMILIES = (
    # name, control tokens that must be seen in rendered turns
    ("harmony", {"<|start|>", "<|message|>", "<|channel|>"}),
    ("glm", {"<|user|>", "<|assistant|>", "[gMASK]"}),
    ("llama3", {"<|start_header_id|>", "<|eot_id|>"}),
    ("gemma", {"<start_of_turn>", "<end_of_turn>"}),
    ("gemma", {"<|turn>", "<turn|>"}),
    ("mistral", {"[INST]", "[/INST]"}),
    ("chatml", {"<|im_start|>", "<|im_end|>"}),
)


@dataclass(frozen=True)
class Probe:
    """The outcome: the format, and what rendering needs beyond it.

    Attributes:
        format: For people, engines and records.
        generation_prompt: What `add_generation_prompt` appends; empty if the template ignores it.
        cut_assistant: Whether the assistant header must be found with a sentinel, for want of a generation
            prompt.
        user_slack: Trailing spaces of the user header that belong to the next word's token and are left to
            the model.
        assistant_slack: The same for an assistant header found with a sentinel.
    """

    format: TurnFormat
    generation_prompt: str
    cut_assistant: bool
    user_slack: int
    assistant_slack: int


def probe(template: Template, encoder: Encoder, extra_stops: Sequence[int]) -> Probe:
    """Probe a template with the conversation user, assistant, user, assistant.

    Args:
        template: The bound template.
        encoder: The tokeniser.
        extra_stops: Ids that end any turn, for instance from a generation config.

    Raises:
        TemplateNotProbeable: The template has no user role, alters content, or marks no end of a user turn.
    """
    marks = [f"{template.stem}P{index}E" for index in range(4)]
    roles: list[Role] = ["user", "assistant", "user", "assistant"]
    turns = [Message(role=role, content=mark) for role, mark in zip(roles, marks, strict=True)]
    whole = template.render(turns)
    places = [
        position(whole, mark, f"the content of a {role} message") for role, mark in zip(roles, marks, strict=True)
    ]
    if places != sorted(places):
        raise TemplateNotProbeable("the template writes the turns in another order than given")
    ends = [place + len(mark) for place, mark in zip(places, marks, strict=True)]
    after_assistant, after_user = whole[ends[1] : places[2]], whole[ends[2] : places[3]]

    generation_prompt = _generation_prompt(template, turns[:3])
    closed = template.render(turns[:2])
    final_end = closed[position(closed, marks[1], "a last assistant message") + len(marks[1]) :]
    assistant_end = tail(template, turns[:2], marks[1], generation_prompt)
    user_end = tail(template, turns[:3], marks[2], generation_prompt)
    user_header = _rest(after_assistant, assistant_end, "an assistant turn")
    past_header = _rest(after_user, user_end, "a user turn")
    first_header = _rest(whole[ends[0] : places[1]], user_end, "a first user turn")

    controls = encoder.controls
    notes = list(template.notes)
    user_slack = _slack(encoder, user_header, marks[0])
    cut_assistant = not generation_prompt and bool(past_header.strip())
    assistant_slack = _slack(encoder, past_header, marks[0]) if cut_assistant else 0
    header = user_header[: len(user_header) - user_slack]
    assistant_header = generation_prompt or (past_header[: len(past_header) - assistant_slack] if cut_assistant else "")

    eos = encoder.tokenizer.eos_token_id
    general = {*extra_stops, *(() if eos is None else (eos,))}
    general |= {controls.ids[text] for text in _ALWAYS_STOP if text in controls.ids}
    openers = _ids(controls, header, assistant_header)
    stop_strings = _stop_strings(controls, after_user, user_end, notes)
    stops = general | openers | _ids(controls, after_user)

    assistant_close, final_close = _ids(controls, after_assistant), _ids(controls, final_end)
    if final_close and final_close != assistant_close:
        # Harmony: one assistant turn is several messages, each closed like a turn of the history.
        assistant_stops = general | final_close
        notes.append(
            f"a last assistant turn ends with {final_end!r}, an earlier one with {assistant_end!r}: "
            "only the former stops the assistant, and user prompts carry the latter"
        )
    else:
        assistant_stops = general | openers | assistant_close
        if not openers | assistant_close:
            notes.append("no token of the template ends an assistant turn: only an end-of-text token does")
    notes += _findings(template, turns, user_header, generation_prompt, encoder)
    if user_slack or assistant_slack:
        notes.append("a header's trailing space is left to the model: it is part of the next word's token")
    return Probe(
        format=TurnFormat(
            family=family(
                {found.group() for found in controls.find(whole + generation_prompt)}, whole, template.source
            ),
            user_header=header,
            user_header_token_ids=tuple(encoder.plain(header)),
            user_end=user_end,
            stop_token_ids=tuple(sorted(stops)),
            stop_strings=stop_strings,
            assistant_header=assistant_header,
            assistant_turn_header=first_header,
            assistant_stop_token_ids=tuple(sorted(assistant_stops)),
            template_sha256=template.sha256,
            bos_token_id=encoder.tokenizer.bos_token_id,
            notes=tuple(notes),
        ),
        generation_prompt=generation_prompt,
        cut_assistant=cut_assistant,
        user_slack=user_slack,
        assistant_slack=assistant_slack,
    )


def retained(template: Template, messages: Sequence[Message], generation_prompt: str) -> str:
    """Render `messages` as the last turns, closed as turns of the history are.

    Harmony closes a last assistant turn in its own way, unless a generation prompt follows.

    Raises:
        TemplateNotProbeable: The generation prompt cannot be told from the rest.
    """
    closed = template.render(messages)
    opened = template.render(messages, open_assistant=True)
    if opened.startswith(closed):
        return closed
    if generation_prompt and opened.endswith(generation_prompt):
        return opened[: len(opened) - len(generation_prompt)]
    raise TemplateNotProbeable("the template renders the context differently when an assistant turn is to follow")


def tail(template: Template, turns: Sequence[Message], mark: str, generation_prompt: str) -> str:
    """What the template writes after the last content, up to the next turn's header."""
    text = retained(template, turns, generation_prompt)
    return text[position(text, mark, f"a last {turns[-1]['role']} message") + len(mark) :]


def family(seen: set[str], rendered: str, source: str) -> str:
    """A name for the format.

    Args:
        seen: Control tokens in a rendered conversation.
        rendered: That conversation.
        source: The template's source.
    """
    if {"<|im_start|>", "<|im_end|>"} <= seen and "<think>" in source:
        return "qwen"
    for name, tokens in _FAMILIES:
        if tokens <= seen:
            return name
    return "mistral" if "[INST]" in rendered and "[/INST]" in rendered else "generic"


def _ids(controls: ControlTokens, *texts: str) -> set[int]:
    """Ids of the first control token of each text that has one."""
    return {token_id for token_id in map(controls.first_id, texts) if token_id is not None}


def _stop_strings(controls: ControlTokens, after: str, end: str, notes: list[str]) -> tuple[str, ...]:
    """What ends a user turn where no token does; findings about its end go to `notes`."""
    if not controls.find(after):
        text = after.strip()
        if not text:
            raise TemplateNotProbeable(
                f"nothing marks the end of a user turn: only {after!r} stands before the assistant's"
            )
        # At the start of a line, a marker in plain words is hardly ever part of a sentence.
        text = "\n" + text if after[: after.index(text)].endswith("\n") else text
        notes.append(f"no single token ends a user turn: stop string {text!r}")
        notes.append("turn markers are plain text to this tokenizer: content can imitate them")
        return (text,)
    if not controls.find(end):
        notes.append("a user turn has no end token of its own: it ends where the next turn opens")
        if end.strip():
            notes.append(f"the template appends {end!r} to the content of a user turn")
    return ()


def _generation_prompt(template: Template, turns: Sequence[Message]) -> str:
    closed = template.render(turns)
    opened = template.render(turns, open_assistant=True)
    if not opened.startswith(closed):
        raise TemplateNotProbeable("the generation prompt changes the turns before it")
    return opened[len(closed) :]


def _rest(between: str, end: str, what: str) -> str:
    if not between.startswith(end):
        raise TemplateNotProbeable(
            f"{what} ends with {end!r} at the end of a conversation, but {between!r} stands between it and "
            "the content of the next"
        )
    return between[len(end) :]


def _slack(encoder: Encoder, header: str, word: str) -> int:
    ids = encoder.plain(header)
    if encoder.plain(header + word)[: len(ids)] == ids:
        return 0
    return len(header) - len(header.rstrip(" "))


def _findings(
    template: Template,
    turns: Sequence[Message],
    user_header: str,
    generation_prompt: str,
    encoder: Encoder,
) -> list[str]:
    notes: list[str] = []
    first = template.cut([], "user", turns[0]["content"])
    preamble = first[: len(first) - len(user_header)] if first.endswith(user_header) else first
    if preamble:
        notes.append(f"the template itself begins a conversation with {preamble!r}")
    earlier = template.cut(turns[:2], "user", turns[2]["content"])
    if earlier != retained(template, turns[:2], generation_prompt) + user_header:
        notes.append("an assistant turn is written differently once a user turn follows: prefix matters")
    bos = encoder.tokenizer.bos_token_id
    if bos is not None and bos == encoder.controls.first_id(user_header):
        notes.append("the tokenizer's BOS is the turn opener")
    return notes
