"""Closed word lists of the surface features: what a stock phrase, an opener or a pronoun is.

Written for this project from how English chat turns open and close. English only, which the study's datasets are; a
turn in another language gets no voice cue from here and is decided by similarity alone.
"""

from __future__ import annotations

STOP_WORDS = frozenset(
    """a about after again all also am an and any are as at be because been before being but by can could did do does
    doing done for from get got had has have having he her here hers him his how i if in into is it its just let like
    make may me might more most much must my no nor not now of off on one only or other our out over own please same
    shall she should so some such than that the their them then there these they this those through to too under until
    up us very was we were what when where which while who whom whose why will with would yes you your yours i'm i've
    i'd i'll it's that's don't doesn't didn't isn't aren't wasn't can't couldn't won't wouldn't you're you've you'll
    what's there's let's im ive dont""".split()
)

QUESTION_OPENERS = frozenset(
    """what what's whats why how how's who who's whom whose which when where where's is are was were am do does did
    can could would will shall should may might has have had isn't aren't don't doesn't didn't can't couldn't
    won't wouldn't""".split()
)

# Requests one makes of an assistant; verbs of recipes and manuals (use, install, check) are left out on purpose.
IMPERATIVE_VERBS = frozenset(
    """add answer calculate change clarify compare compute continue convert correct define describe elaborate explain
    expand extend fix generate give help illustrate improve list make modify name outline prove provide recommend redo
    rephrase replace rewrite shorten show simplify solve suggest summarise summarize talk tell translate verify
    write""".split()
)

# Words that a person puts before the imperative or the question.
SOFTENERS = frozenset(
    """please kindly now ok okay so and but also then well alright great good nice cool thanks thank you perfect hi
    hello hey yes no sorry actually next first instead oh ah wow hmm awesome interesting very much""".split()
)

# Singular only: "we" is the voice of a worked solution.
FIRST_PERSON = frozenset("i i'm i've i'd i'll me my mine myself im ive".split())
SECOND_PERSON = frozenset("you your yours you're you've you'll you'd yourself u ur".split())

# Verdicts on what was said; with a word that points back they are a user's reaction.
REACTION_WORDS = frozenset(
    """agree amazing awesome bad better clear confusing correct disagree doubt enough error excellent false funny good
    great helpful incorrect interesting long mistake nice nonsense perfect short sorry sure surprised thank thanks true
    unclear useful weird wow wrong""".split()
)

# What points back at something already said; a user's turn that leans on the assistant turn seldom repeats its words.
ANAPHORA = frozenset(
    """it its it's that that's this these those them they they're their there above former latter both else again
    instead same previous earlier last another other one ones mentioned here he she him her his""".split()
)

# Nouns for the assistant turn itself: "your second example", "the code you wrote".
ANSWER_WORDS = frozenset(
    """answer answers response reply explanation example examples solution step steps code script list summary
    calculation method point points essay story poem text sentence paragraph output version option options result
    statement claim mistake wrong incorrect correct error""".split()
)

# A sentence made only of these words carries no content: thanks, greetings, empty prompts to go on.
STOCK_WORDS = frozenset(
    """thank thanks you so very much for a an the your that's that is this it's its it was great good nice cool
    awesome perfect amazing excellent wonderful helpful fantastic ok okay alright sure yes no yeah yep nope hi hello
    hey there help information answer response got understood understand i see go on continue please more tell me
    anything else what next and now do have to any other questions question bye goodbye later day lot appreciate
    really all right interesting wow oh how are doing today can could would like know something assist with of
    welcome day explain again explanation hmm well ask want providing provided sharing clarification another""".split()
)

# "You can do ...", said of what the reader may do: advice. A user turns it round ("can you").
ADVICE_VERBS = frozenset("can could should may might must need will".split())

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

# Talk about the conversation from outside; only at the start of the text or of a sentence, because a user may quote it.
META_OPENERS = (
    "the user",
    "the human",
    "the assistant",
    "this user",
    "user:",
    "human:",
    "assistant:",
    "as the user",
    "as a user",
    "i am the user",
    "i need to respond",
    "i should respond",
    "i need to reply",
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
    "analysis:",
)
