"""Whether a text is English: a small rule, the same on every machine and in every version.

A language identifier would be more exact on short texts, but its answer changes with its profiles and its
random draws. The rule counts function words: no other language that is written in the Latin alphabet shares
many of the English ones, and texts in other scripts are told by their letters.
"""

import re
import unicodedata


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The commonest function words of English that are no common words of other languages in Latin script.
_ENGLISH = _words(
    """
    the and of to is that it for you with this be are have was what can my your how not from but there if
    should would could about when which who why an at by they their them has had been were will just like
    than then does did do i'm it's don't i've i me we our he she his her him or on as so any some out up get
    """
)
_OTHERS = _words(
    """
    el la los las un una que de en por para con como es se su del lo mi mis está qué más pero sin muy tengo
    le les des du et est une pour dans pas je vous que sur avec au aux ce mon ma mes qui ne son suis
    der die das und ist nicht ein eine mit ich zu den von auf für dem im sie wie habe auch
    o os um uma do da dos das em não com no na eu meu minha são ou mas foi
    il di che è per non sono gli della con ho mio
    de het een van ik niet dat zijn voor op met
    yang dan saya untuk dengan tidak ini itu apa ke dari ada
    na ya wa kwa ni nini yangu kama ang ng mga sa ko ako
    ve bir bu için ne ben mi var çok w nie jest się z że jak och att det är som jag på inte
    """
) - {"do", "no", "an", "is", "at", "so", "on", "me", "as", "his", "him", "i", "are", "has", "had", "was"}
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LATIN_SHARE = 0.9
_FUNCTION_SHARE = 0.05


def is_english(text: str) -> bool:
    """Tells whether a text is mostly English.

    At least nine letters in ten are Latin, English function words are at least as many as those of eleven
    other languages in Latin script, and, from twelve words on, at least one word in twenty is one. A short text
    without function words of any language passes.

    Args:
        text: any text.

    Returns:
        Whether the rule holds; False for a text without letters.
    """
    letters = [sign for sign in text if sign.isalpha()]
    if not letters:
        return False
    latin = sum(sign.isascii() or unicodedata.name(sign, "").startswith("LATIN") for sign in letters)
    if latin < _LATIN_SHARE * len(letters):
        return False
    words = [word.replace("’", "'") for word in _WORD.findall(text.lower())]
    english = sum(word in _ENGLISH for word in words)
    others = sum(word in _OTHERS for word in words)
    return english >= others and (len(words) < 12 or english >= _FUNCTION_SHARE * len(words))
