"""Closed word lists of the surface features: what a stock phrase, an opener or a pronoun is.

Written for this project from how English chat turns open and close. English only, which the study's datasets
are; a turn in another language gets no voice cue from here and is decided by similarity alone.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _words(
    """
    a about after again all also am an and any are aren't as at be because been before being but by
    can can't could couldn't did didn't do does doesn't doing don't done dont for from get got had
    has have having he her here hers him his how i i'd i'll i'm i've if im in into is isn't it it's
    its ive just let let's like make may me might more most much must my no nor not now of off on
    one only or other our out over own please same shall she should so some such than that that's
    the their them then there there's these they this those through to too under until up us very
    was wasn't we were what what's when where which while who whom whose why will with won't would
    wouldn't yes you you'll you're you've your yours
    """
)

QUESTION_WORDS = _words("how how's what what's whats when where where's which who who's whom whose why")
AUXILIARIES = _words(
    """
    am are aren't can can't could couldn't did didn't do does doesn't don't had has have is isn't may
    might shall should was were will won't would wouldn't
    """
)
QUESTION_OPENERS = QUESTION_WORDS | AUXILIARIES

# Requests one makes of an assistant; verbs of recipes and manuals (use, install, check) are left out on
# purpose.
IMPERATIVE_VERBS = _words(
    """
    add answer calculate change clarify compare compute continue convert correct define describe
    elaborate expand explain extend fix generate give help illustrate improve list make modify name
    outline prove provide recommend redo rephrase replace rewrite shorten show simplify solve
    suggest summarise summarize talk tell translate verify write
    """
)

# Requests for a new piece of work rather than about the one at hand.
COMMISSION_VERBS = _words("compose create design develop draft generate implement make produce write")

# Words that a person puts before the imperative or the question.
SOFTENERS = _words(
    """
    actually ah alright also and awesome but cool first good great hello hey hi hmm instead
    interesting kindly much next nice no now oh ok okay perfect please so sorry thank thanks then
    very well wow yes
    """
)

# Singular only: "we" is the voice of a worked solution.
FIRST_PERSON = _words("i i'd i'll i'm i've im ive me mine my myself")
SECOND_PERSON = _words("u ur you you'd you'll you're you've your yours yourself")

# Verdicts on what was said; with a word that points back they are a user's reaction.
REACTION_WORDS = _words(
    """
    agree amazing awesome bad better clear confusing correct disagree doubt enough error excellent
    false funny good great helpful incorrect interesting long mistake nice nonsense perfect short
    sorry sure surprised thank thanks true unclear useful weird wow wrong
    """
)

# What points back at something already said; a user's turn that leans on the assistant turn seldom repeats
# its words.
ANAPHORA = _words(
    """
    above again another both earlier else former he her here him his instead it it's its last latter
    mentioned one ones other previous same she that that's their them there these they they're this
    those
    """
)

# Nouns for the assistant turn itself: "your second example", "the code you wrote".
ANSWER_WORDS = _words(
    """
    answer answers calculation claim code correct error essay example examples explanation incorrect
    list method mistake option options output paragraph poem point points reply response result
    script sentence solution statement step steps story summary text version wrong
    """
)

# A sentence made only of these words carries no content: thanks, greetings, empty prompts to go on.
STOCK_WORDS = _words(
    """
    a again all alright amazing an and another answer any anything appreciate are ask assist awesome
    bye can clarification continue cool could day do doing else excellent explain explanation
    fantastic for go good goodbye got great have hello help helpful hey hi hmm how i information
    interesting is it it's its know later like lot me more much next nice no nope now of oh ok okay
    on other perfect please provided providing question questions really response right see sharing
    so something sure tell thank thanks that that's the there this to today understand understood
    very want was welcome well what with wonderful would wow yeah yep yes you your
    """
)

# "You can do ...", said of what the reader may do: advice. A user turns it round ("can you").
ADVICE_VERBS = _words("can could may might must need should will")

# An assistant's offers and disclaimers, whatever else the text holds.
ASSISTANT_PHRASES = (
    "you're welcome",
    "you are welcome",
    "i'd be happy to",
    "i would be happy to",
    "i'm happy to",
    "i'd be glad to",
    "glad to help",
    "i'm here to help",
    "as an ai language model",
    "as an ai assistant",
    "as an ai,",
    "i'm an ai",
    "i am an ai",
    "i'm sorry, but",
    "i apologize",
    "i hope this helps",
    "let me know if",
    "feel free to",
    "how can i help",
    "how can i assist",
    "how may i help",
    "how may i assist",
    "what can i help you with",
    "would you like me to",
    "would you like to",
    "does this answer your question",
    "does that answer your question",
    "assistant:",
    "ai:",
    "do you have any other questions",
    "do you have any questions",
    "is there anything else",
)

# How an answer or a worked solution opens; a sentence that asks or directs may open so in a user's mouth.
ANSWER_OPENERS = (
    "here is",
    "here are",
    "here's",
    "sure",
    "certainly",
    "absolutely",
    "of course",
    "to solve",
    "to find",
    "to calculate",
    "to determine",
    "to answer",
    "let's break",
    "let's start by",
    "let's solve",
    "let's calculate",
    "first, we",
    "first, let's",
    "next, we",
    "now, we",
    "we need to",
    "we can calculate",
    "we can find",
    "we know that",
    "step 1",
    "the answer is",
    "the final answer",
    "therefore",
    "answer:",
    "solution:",
)

# Talk about the conversation from outside; only at the start of the text or of a sentence, because a user
# may quote it.
META_OPENERS = (
    *(
        f"{who} {verb}"
        for who in ("the user", "this user", "the human", "the assistant", "the ai")
        for verb in (
            "is",
            "has",
            "was",
            "wants",
            "want",
            "asks",
            "asked",
            "said",
            "seems",
            "needs",
            "should",
            "would",
            "will",
            "provided",
            "gave",
            "answered",
            "responded",
            "replied",
            "just",
            "might",
            "may",
        )
    ),
    "the user's",
    "okay, the user",
    "okay, so the user",
    "ok, the user",
    "so the user",
    "user:",
    "human:",
    "as the user",
    "i am the user",
    "i'm the user",
    "i need to respond",
    "i need to reply",
    "i should respond",
    "i should reply",
    "i need to generate",
    "i should ask a follow-up",
    "my response should",
    "the response should",
    "the prompt asks",
    "the task is to",
    "the question asks",
    "<think>",
    "</think>",
)
