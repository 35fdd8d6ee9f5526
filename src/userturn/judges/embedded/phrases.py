"""Texts that fit any conversation, and talk about one from outside: written for this project."""

from __future__ import annotations

GENERIC: tuple[str, ...] = tuple(
    """
    Thanks!
    Thank you.
    thank you so much
    Thanks, that helps.
    Great, thanks!
    ok
    Okay.
    OK, thanks
    Got it.
    got it, thanks a lot
    I see.
    Interesting.
    That's interesting!
    Cool
    Nice.
    Perfect!
    That was helpful.
    This is very helpful, thank you!
    Hello
    Hi there!
    hey
    Good morning.
    Hi, how are you?
    Good job!
    Well done.
    Awesome
    wow
    Yes.
    yes please
    No.
    no thanks
    Sure.
    Maybe.
    I agree.
    I don't understand.
    I'm not sure.
    I don't get it
    Can you explain?
    Can you explain that again?
    Could you explain this in more detail?
    Please explain more.
    Tell me more.
    tell me more about that
    What else?
    Anything else?
    What else can you tell me?
    Go on.
    Continue.
    please continue
    Next.
    What do you mean?
    What does that mean?
    Why?
    why is that?
    How so?
    Are you sure?
    are you sure about that
    Is that all?
    Can you give me an example?
    Can you help me?
    I need help.
    Can I ask you a question?
    I have a question.
    I have another question.
    What can you do?
    Who are you?
    Are you a human?
    Can you do better?
    Try again.
    Do it again.
    That's not what I wanted.
    That makes sense.
    Makes sense, thanks.
    I'll think about it.
    I will try that.
    Let me try.
    Bye!
    See you later.
    Have a nice day!
    That's all for now.
    I appreciate your help.
    Sounds good.
    Fair enough.
    Good to know.
    Alright, thanks for the information.
    What should I do next?
    What do you think?
    What is the answer?
    Can you repeat that?
    Please help me with this.
    How does it work?
    Where can I find more information?
    Can you give me more details about this topic?
    """.replace("\n    ", "\n")
    .strip()
    .split("\n")
)

#: Talk about the conversation from outside; ``{}`` takes words of the query.
META: tuple[str, ...] = (
    "The user is asking about {}, so the next message should be a follow-up question.",
    "The user wants to know about {}. I should respond with more detail.",
    "I would most likely send you a message about {}.",
    'I would send the following message: "I want to know more about {}."',
    "Okay, the user asked about {}. Let me think about what they would say next.",
    "As the user, I would ask something about {}.",
    "The next user message would be a question on {}.",
    "User: what about {}? Assistant: It depends.",
    "The assistant should have answered the question about {} first.",
    "In this conversation the user and the assistant talk about {}.",
    'Here is a message that the user might send next: "Please say more on {}."',
    "<think> The user needs help with {} and I have to write their reply. </think>",
)
