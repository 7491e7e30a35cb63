"""Hearing of a scripted user: rules that tell whether an agent asks, wants a confirmation, reports or declines.

Rules over English words, for users that need no model. A sentence they do not understand is none of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

LONGEST = 4_000  # characters of a message that a scripted user reads
REQUEST = re.compile(
    r"\?|\b(please|could you|can you|would you|may i|let me know|i(?:'ll)? need|provide|tell me|share|specify|send me|"
    r"give me|what|which)\b"
)
OPEN = re.compile(  # asks for whatever the user has to say
    r"\btell me (\w+ )?(more|everything|all|what|about (it|this|that|the \w+|your \w+))\b|"
    r"\beverything (that )?you (know|have|can)\b|\banything (else|more) (that )?you (can|could|want|need|know)\b|"
    r"\b(explain|describe) (the|your|it|this|that)\b|\belaborate\b|"
    r"\b(more|further|any|all|your|the|some|other) (the |relevant |additional )?(details?|information|facts)\b|"
    r"\bwhat (else|exactly|happened|do you (need|want))\b|"
    r"\bwhat(?:'s| is| was| seems to be| exactly is) (it about|(the )?(matter|problem|issue|wrong))\b|"
    r"\bhow (can|may|could|shall) i (help|assist)\b|\bwhat (can|may|could) i do for you\b"
)
CONFIRM = re.compile(
    r"\b(shall|should|may|can) i (now )?(proceed|go ahead|continue|do (that|this|so|it)|process|cancel|change|submit)|"
    r"would you like me to|do you (want|wish) me to|do you (confirm|agree)|are you (sure|happy|ok)|"
    r"is (that|this|it|everything) (all )?(correct|right|ok|okay|fine)|"
    r"\byes\W{1,3}(or|/)?\W{0,3}no\b|\((yes|reply yes)|(say|reply|type|answer)( with)?\W{1,3}yes\b|"
    r"please confirm\b(?! your| the (e-?mail|order (number|id)|name|postcode|zip))|to confirm\b|ready to proceed|"
    r"if you confirm|(would|do) you (like|want) to (proceed|go ahead|continue)"
)
DONE = re.compile(
    r"\b(done|completed|successful(ly)?|processed|recorded|registered|submitted|all set|taken care of|"
    r"(has|have|had) (now )?been|was (cancelled|canceled|changed|updated|returned|exchanged|given|added)|"
    r"i(?:'ve| have)( now| just| successfully)? (\w+ed|given|sent|made|set|put))\b"
)
DECLINE = re.compile(
    r"\b(unfortunately|unable|can(?:no|')t|can not|not able|won't|will not be able|declin\w+|"
    r"not (possible|eligible|allowed|permitted)|not be (returned|exchanged|cancelled|canceled|changed)|"
    r"against (our|the) policy|outside (of )?(our|the)|no longer (possible|eligible))\b"
)
ANYTHING_ELSE = re.compile(
    r"\b(anything|something) else\b|\bfurther (assistance|help|questions)\b|\bother (questions|requests)\b"
)
TRANSFERRED = re.compile(
    r"\b(being transferred|transfer(red|ring)? you|connect(ing|ed)? you (to|with) a (human|colleague))\b"
)


def heard(words: str) -> str:
    """Return a message as the rules read it: lower case, single spaces, plain quotes, cut to `LONGEST`."""
    return " ".join(words[:LONGEST].lower().replace("\u2019", "'").split())


def requests(text: str) -> bool:
    """Return True if a message, as `heard` gives it, asks for anything."""
    return REQUEST.search(text) is not None


def open_request(text: str) -> bool:
    """Return True if a message, as `heard` gives it, asks for whatever the user has to tell."""
    return OPEN.search(_asking(text)) is not None


def topics(text: str, patterns: Mapping[str, re.Pattern[str]]) -> list[str]:
    """Return the names of the patterns that the asking sentences of a message contain, in the order of `patterns`."""
    asking = _asking(text)
    return [name for name, pattern in patterns.items() if pattern.search(asking)]


def _asking(text: str) -> str:
    """Return the sentences of a message that ask for anything; all of it if none does."""
    return " ".join(part for part in re.split(r"(?<=[.!?;:])\s|\s[-*]\s", text) if REQUEST.search(part)) or text
