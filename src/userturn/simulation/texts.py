"""The texts of simulations: word-like, of a length and a label that are asked for, and marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

#: Every simulated text starts so.
MARKER = "SIMULATED"
#: The label whose share is asked for.
GENUINE = "genuine_followup"


_ENGLISH = """
able about above across after again air all almost alone along already also always among answer any apple area arm
around ask autumn away back bag ball bank base basket bath beach bear bed before begin behind bell below bench best
better between bird blue board boat body book both bottle bowl box branch bread break bridge bright bring brother
brown brush build bus busy butter button buy call candle car card carry case castle cat chair chance change cheese
child choose circle city class clean clear climb clock close cloth cloud coat coffee cold color come common cook
cool corner cost count country cover cup cut daily dance dark day deep desk dinner dish door down draw dream dress
drink drive dry dust each early earth east easy eat edge egg eight empty end enough even evening every eye face fact
fair fall family far farm fast father feel fence few field fill find fine finger fire first fish five floor flower
fly follow food foot forest four free fresh friend from fruit full game garden gate gentle get gift give glad glass
go gold good grass gray great green ground group grow guess half hall hand happy hard hat have head hear heart heavy
help here high hill hold home hope horse hot hour house hundred ice idea inside island join jump just keep key kind
king kitchen knee know lake lamp land large last late laugh lead leaf learn letter light line list listen little
long look loud love low lunch make map
"""
#: 256 of them, so that each byte of a hash names one.
WORDS: tuple[str, ...] = tuple(_ENGLISH.split())

#: How a text of each label begins. The first three words of each are its own. Generation knows no judges, so the labels
#: are spelled here too (tested).
OPENERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        GENUINE: (
            "could you say more about the",
            "why does that hold for the",
            "what would happen if the",
            "how sure are you that the",
        ),
        "restates_prompt": ("my question is still the", "once more the question was about the"),
        "continues_as_assistant": ("here is the rest of the", "to sum up what I said about the"),
        "meta_reasoning": ("the user now wants the", "as the user I should ask about the"),
        "generic": ("thank you for all of the", "that is great and the"),
        "unrelated": ("on another matter entirely the", "I was thinking of the"),
        "degenerate": ("the the the the",),
    }
)

_LABELS: Mapping[tuple[str, ...], str] = MappingProxyType(
    {tuple(opener.split()[:3]): label for label, openers in OPENERS.items() for opener in openers}
)


def compose(opener: str, filling: bytes, ending: str, n_words: int) -> str:
    """One text.

    Args:
        opener: how it begins, after the marker.
        filling: a byte for each further word.
        ending: how it ends.
        n_words: words of the text; what does not fit is cut off its end.
    """
    words = [MARKER, *opener.split(), *map(WORDS.__getitem__, filling), *ending.split()]
    return " ".join(words[:n_words])


def label_of(text: str) -> str | None:
    """The label that a text was written for, or None where that is not to be seen."""
    first: Sequence[str] = text.split(" ", 4)
    return _LABELS.get(tuple(first[1:4])) if first[0] == MARKER else None
