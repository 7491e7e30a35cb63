"""What an HTTP error means: wait and try again, stop at once, give this request up, or a result of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lmgym.policy.endpoints.calls import Raw, Refused, Rejected, Said, Trouble
from lmgym.policy.endpoints.pace import retry_after
from lmgym.types import Finish

OVERFLOW = re.compile(  # how servers say that a conversation no longer fits; naming the limit alone says nothing
    r"context_length_exceeded|exceed_context_size"
    r"|maximum context length is \d+ tokens.{0,20}(?:however|and your)"
    r"|(?:exceed(?:s|ed)?|longer than|greater than|too large for)\b.{0,60}(?:context (?:window|size|length|limit)"
    r"|maximum model length)|context (?:window|size|length|limit)(?: has been| is| was)? (?:exceeded|overflow)"
    r"|prompt is too long|input is too long|too many input tokens|input token count.{0,60}exceed"
    r"|inputs. tokens \+ .max_new_tokens. must be"
    r"|reduce the length of (?:the|your|either)(?: one| input)?(?: messages| prompt)?",
    re.IGNORECASE | re.DOTALL,
)
FILTERED = re.compile(
    r"content_filter|content_policy|flagged.{0,40}moderation|moderation_blocked|responsible ?ai|safety system",
    re.IGNORECASE | re.DOTALL,
)
BARRED = re.compile(  # the codes of a filter; a 403 without one is a right that is missing
    r"\b(?:content_filter|content_policy|content_policy_violation|moderation_blocked|responsibleaipolicyviolation)\b",
    re.IGNORECASE,
)
BROKE = re.compile(  # the codes of an account without credit; words about billing also stand in passing limits
    r"\b(?:insufficient_quota|insufficient_credits?|insufficient_balance|billing_hard_limit_reached"
    r"|billing_not_active|credit_balance_too_low)\b",
    re.IGNORECASE,
)
DENIED = frozenset(  # codes and types of errors that no further request will mend, whatever status they came with
    [
        "invalid_api_key",
        "api_key_invalid",
        "incorrect_api_key",
        "invalid_key",
        "no_api_key",
        "missing_api_key",
        "unauthorized",
        "unauthenticated",
        "authentication_error",
        "invalid_authentication",
        "invalid_authentication_error",
        "permission_error",
        "permission_denied",
        "account_deactivated",
        "access_denied",
        "organization_deactivated",
        "model_not_found",
        "not_found_error",
    ]
)
CODES: Mapping[str, int] = {  # the status that an error means, where a body alone says what it is
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
}
AGAIN = (408, 409, 425)  # beside 5xx
RESULT = "lmgym"  # member of a reply that we wrote in the place of an error that is a result


def result_of(status: int, headers: Mapping[str, str], text: str) -> Raw:
    """A reply that stands for an HTTP error, where this is a result: no room, or a filter.

    Raises Trouble, Rejected or Refused for any other.
    """
    if status in (400, 413, 422) and OVERFLOW.search(text):
        return {RESULT: "context", "status": status, "message": text}
    if (status in (400, 422) and FILTERED.search(text)) or (status == 403 and BARRED.search(text)):
        return {RESULT: "filter", "status": status, "message": text}
    raise error_of(status, headers, text)


def status_of(fault: Mapping[str, Any]) -> int:
    """The status that an error inside a reply means; 500 where it does not say."""
    for word in _codes(fault):
        if word.isdecimal() and 400 <= int(word[:4]) < 600:
            return int(word)
        if word in DENIED:
            return 401
        if BROKE.fullmatch(word):
            return 402
        if word in CODES:
            return CODES[word]
    return 500


def _codes(fault: Mapping[str, Any]) -> list[str]:
    """What an error calls itself: its code, type and status, and the reasons in its details."""
    details = fault.get("details")
    parts = [fault, *(each for each in (details if isinstance(details, list) else []) if isinstance(each, Mapping))]
    words = [part.get(name) for part in parts for name in ("code", "type", "status", "reason")]
    return [str(word).lower() for word in words if isinstance(word, str | int) and not isinstance(word, bool)]


def _denied(text: str) -> bool:
    """Whether the body of an error says by its code that no request will be answered."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return False
    found = [body, body.get("error")] if isinstance(body, Mapping) else []
    return any(not DENIED.isdisjoint(_codes(part)) for part in found if isinstance(part, Mapping))


def shortened(raw: Raw) -> Raw:
    """A reply that stands for an error with no more of its words than are worth keeping; keys are struck out before."""
    return {**raw, "message": str(raw.get("message"))[:400]} if RESULT in raw else raw


def said_by_result(raw: Raw) -> Said | None:
    """What a reply says that stands for an error; None for an ordinary one."""
    finishes: dict[str, Finish] = {"context": "context", "filter": "filter"}
    finish = finishes.get(str(raw.get(RESULT)))
    return None if finish is None else Said(text="", finish=finish, usage={"in": 0, "out": 0})


def error_of(status: int, headers: Mapping[str, str], text: str) -> Trouble | Rejected | Refused:
    """The error that an HTTP error is."""
    words = f"HTTP {status}: {text}"
    if _denied(text):
        return Refused(f"{words}. Check the address, the model's name and the key")
    if status == 402 or (status == 429 and BROKE.search(text)):
        return Refused(f"no credit left: {words}")
    after = retry_after(
        headers.get("retry-after"), milliseconds=headers.get("retry-after-ms"), date=headers.get("date")
    )
    if status == 429:
        return Trouble("rate", words, after=after)
    if status >= 500 or status in AGAIN:
        return Trouble("server", words, after=after)
    if status in (400, 413, 422):
        return Rejected(words)
    return Refused(f"{words}. Check the address, the model's name and the key")
