"""Program rules for `degenerate`: empty, template tokens, loops, gibberish.

Each rule looks at the first `features.MAX_CHARS` characters and returns its evidence or None. Real words in a
senseless order are not gibberish to a program; such a text is left to the other rules.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from userturn.judges.features import MAX_CHARS, WORD, tokens
from userturn.judges.labels import JSON

# ChatML, Llama, Gemma, Mistral, GLM and harmony marks. Think tags are absent: they are `meta_reasoning`.
_TEMPLATE_TOKEN = re.compile(
    r"<\|[a-z0-9_]{1,40}\|>|<｜[^｜<>\n]{1,40}｜>|\[/?INST\]|<</?SYS>>|<(?:start|end)_of_turn>|"
    r"\[gMASK\]|<sop>|\A\s{0,20}<s>|</s>\s{0,20}\Z",
    re.IGNORECASE,
)
_ROLE_LINE = re.compile(r"^(?:assistant|user|system)\s{0,5}$", re.MULTILINE)
_LATIN_WORD = re.compile(r"[a-z]+")
_ORDINARY_SYMBOLS = frozenset(" \t\n\r.,;:!?'\"’‘“”()[]{}<>+-–—*/=%$€£#&@_^|\\`~…°·•→×÷")
# Letter pairs that English words practically never contain; a scrambled word soon does.
_RARE_PAIR_TABLE = """
    bq bx bz cb cg cj cp cv cw cx dx dz fb fc fd fg fh fj fk fm fn fp fq fv fw fx fz gb gc gj gk gq
    gv gx gz hc hd hg hj hk hp hq hv hx hz iy jb jc jd jf jg jh jj jk jl jm jn jp jq jr js jt jv jw
    jx jy jz kc kd kg kj kp kq kv kx kz lj lq lx lz mg mh mj mk mq mv mw mx mz pj pk pq pv px pz qa
    qb qc qd qe qf qg qh qi qj qk ql qm qn qo qp qr qs qt qv qw qx qy qz rx sj sx sz tj tk tq tv tx
    uq uw vb vc vd vf vg vh vj vk vl vm vn vp vq vs vt vu vv vw vx vz wc wg wj wm wp wq wu wv ww wx
    wz xb xd xg xj xk xl xm xn xq xr xs xv xw xx xz yj yq yx yy zb zc zd zf zg zj zk zm zn zp zq zr
    zs zv zw zx
    """
_RARE_PAIRS = frozenset(_RARE_PAIR_TABLE.split())


@dataclass(frozen=True)
class DegenerateThresholds:
    """When a text stops being one.

    Attributes:
        loop_words: Fewest words before a word loop is looked for.
        loop_distinct: A loop when at most this share of the word 4-grams is distinct.
        loop_chars: Fewest characters before a character loop is looked for.
        loop_chars_distinct: A loop when at most this share of the 12-character windows is distinct.
        same_char_run: A loop when one character other than blanks and rulers stands this often in a row.
        broken: Gibberish when this share of the words of 4 letters and more is no word (rare letter pair, no
            vowel, two scripts, digits inside, or over 30 letters) and at least ``broken_words`` are.
        broken_words: See ``broken``.
        symbols: Gibberish when this share of the non-blank characters is neither letter, digit nor ordinary
            symbol.
        scripts: Gibberish when this many scripts carry the letters, each at least a tenth of them.
    """

    loop_words: int = 8
    loop_distinct: float = 0.5
    loop_chars: int = 80
    loop_chars_distinct: float = 0.35
    same_char_run: int = 24
    broken: float = 0.3
    broken_words: int = 2
    symbols: float = 0.25
    scripts: int = 3


def _empty(text: str, _: DegenerateThresholds) -> dict[str, JSON] | None:
    if any(ch.isalnum() for ch in text):
        return None
    return {"characters": len(text), "words": 0}


def _template_tokens(text: str, _: DegenerateThresholds) -> dict[str, JSON] | None:
    found = len(_TEMPLATE_TOKEN.findall(text)) + len(_ROLE_LINE.findall(text))
    return {"template_tokens": found} if found else None


def _longest_char_run(text: str) -> int:
    best = run = 0
    previous = ""
    for ch in text:
        run = run + 1 if ch == previous else 1
        previous = ch
        if ch not in " \t\n\r-_=*#.|":
            best = max(best, run)
    return best


def _loop(text: str, t: DegenerateThresholds) -> dict[str, JSON] | None:
    words = tokens(text)
    grams = [tuple(words[i : i + 4]) for i in range(len(words) - 3)]
    distinct = len(set(grams)) / len(grams) if len(words) >= t.loop_words else 1.0
    windows = max(0, len(text) - 11)
    by_char = len({text[i : i + 12] for i in range(windows)}) / windows if len(text) >= t.loop_chars else 1.0
    run = _longest_char_run(text)
    if distinct <= t.loop_distinct or by_char <= t.loop_chars_distinct or run >= t.same_char_run:
        return {
            "distinct_4grams": round(distinct, 4),
            "distinct_12_chars": round(by_char, 4),
            "longest_char_run": run,
        }
    return None


@functools.lru_cache(maxsize=8192)
def _script(ch: str) -> str:
    name = unicodedata.name(ch, "UNKNOWN").split(" ", 1)[0]
    # Japanese writes three at once.
    return "CJK" if name in {"HIRAGANA", "KATAKANA", "CJK", "HALFWIDTH", "FULLWIDTH"} else name


def _is_broken(word: str) -> bool:
    if not word.isascii():
        return len({_script(ch) for ch in word if ch.isalpha()}) > 1
    if len(word) > 30:
        return True
    latin = _LATIN_WORD.fullmatch(word)
    if not latin:
        return any(
            a.isalpha() and b.isdigit() and c.isalpha() for a, b, c in zip(word, word[1:], word[2:], strict=False)
        )
    if not set(word) & set("aeiouy"):
        return True
    return any(word[i : i + 2] in _RARE_PAIRS for i in range(len(word) - 1))


def _gibberish(text: str, t: DegenerateThresholds) -> dict[str, JSON] | None:
    # Short words in capitals are abbreviations, which no letter pair can judge.
    words = [w.lower() for w in WORD.findall(text) if not (w.isupper() and len(w) <= 5)]
    long_words = [w for w in words if len(w) >= 4 and "'" not in w and not w.isdigit()]
    broken = sum(_is_broken(w) for w in long_words)
    share = broken / len(long_words) if long_words else 0.0
    visible = [ch for ch in text if not ch.isspace()]
    odd = sum(
        not ch.isalnum() and ch not in _ORDINARY_SYMBOLS and not unicodedata.category(ch).startswith("M")
        for ch in visible
    )
    symbols = odd / len(visible) if visible else 0.0
    letters = Counter(_script(ch) for ch in visible if ch.isalpha())
    scripts = sum(count * 10 >= letters.total() for count in letters.values())
    if (share >= t.broken and broken >= t.broken_words) or symbols >= t.symbols or scripts >= t.scripts:
        return {"broken_words": round(share, 4), "odd_symbols": round(symbols, 4), "scripts": scripts}
    return None


Rule = Callable[[str, DegenerateThresholds], "dict[str, JSON] | None"]

RULES: tuple[tuple[str, Rule, str], ...] = (
    ("degenerate_empty", _empty, "The text holds no letter and no digit."),
    ("degenerate_template_tokens", _template_tokens, "The text holds marks of a chat template."),
    ("degenerate_loop", _loop, "The text repeats itself."),
    ("degenerate_gibberish", _gibberish, "The text is mostly not made of words."),
)


def find(text: str, thresholds: DegenerateThresholds) -> tuple[str, dict[str, JSON], str] | None:
    """The first program rule that calls a text degenerate.

    Args:
        text: The user turn.
        thresholds: When a text stops being one.

    Returns:
        Rule name, evidence and rationale; None when the text is a text.
    """
    head = text[:MAX_CHARS]
    for name, rule, rationale in RULES:
        evidence = rule(head, thresholds)
        if evidence is not None:
            return name, evidence, rationale
    return None
