"""The meaning of HTTP errors: retry, reject this request, stop the run, or a result."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from lmgym.policy.endpoints.calls import EndpointRefused, ParsedReply, RawReply, RequestRejected, TransientError
from lmgym.policy.endpoints.pace import retry_after
from lmgym.types import Finish

OVERFLOW = re.compile(  # a conversation exceeds the context; mentions of the limit alone do not match
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
FILTER_CODES = re.compile(  # a 403 without one of these codes is a missing permission
    r"\b(?:content_filter|content_policy|content_policy_violation|moderation_blocked|responsibleaipolicyviolation)\b",
    re.IGNORECASE,
)
NO_CREDIT = re.compile(  # codes only: rate limits also mention billing
    r"\b(?:insufficient_quota|insufficient_credits?|insufficient_balance|billing_hard_limit_reached"
    r"|billing_not_active|credit_balance_too_low)\b",
    re.IGNORECASE,
)
DENIED = frozenset(  # codes and types of errors that every request would meet, whatever their status
    (
        *("invalid_api_key", "api_key_invalid", "incorrect_api_key", "invalid_key", "no_api_key", "missing_api_key"),
        *("unauthorized", "unauthenticated", "authentication_error", "invalid_authentication"),
        *("invalid_authentication_error", "permission_error", "permission_denied", "access_denied"),
        *("account_deactivated", "organization_deactivated", "model_not_found", "not_found_error"),
    )
)
CODES: Mapping[str, int] = {  # HTTP status for the code of an error in a body
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 503,
    "billing_error": 402,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
}
RETRYABLE = (408, 409, 425)  # beside 5xx
RESULT = "lmgym"  # member of a reply that lmgym writes in place of an error that is a result
QUOTE = 400  # characters of a server's error that are kept
CHECK = "Check the address, the model's name and the key"


def result_of(status: int, headers: Mapping[str, str], text: str) -> RawReply:
    """Return a reply in place of an HTTP error that is a result: a full context, or a content filter.

    Raise TransientError, RequestRejected or EndpointRefused for any other error.
    """
    if status in (400, 413, 422) and OVERFLOW.search(text):
        return {RESULT: "context", "status": status, "message": text}
    if (status in (400, 422) and FILTERED.search(text)) or (status == 403 and FILTER_CODES.search(text)):
        return {RESULT: "filter", "status": status, "message": text}
    message = f"HTTP {status}: {text}"
    if _denied(text):
        raise EndpointRefused(f"{message}. {CHECK}")
    if status == 402 or (status == 429 and NO_CREDIT.search(text)):
        raise EndpointRefused(f"no credit left: {message}")
    after = retry_after(
        headers.get("retry-after"), milliseconds=headers.get("retry-after-ms"), date=headers.get("date")
    )
    if status == 429:
        raise TransientError("rate", message, after=after)
    if status >= 500 or status in RETRYABLE:
        raise TransientError("server", message, after=after)
    if status in (400, 413, 422):
        raise RequestRejected(message)
    raise EndpointRefused(f"{message}. {CHECK}")


def status_of(fault: Mapping[str, Any]) -> int:
    """Return the HTTP status that an error inside a reply stands for; 500 if it names none."""
    for code in _codes(fault):
        if code.isdecimal() and 400 <= int(code[:4]) < 600:
            return int(code)
        if code in DENIED:
            return 401
        if NO_CREDIT.fullmatch(code):
            return 402
        if code in CODES:
            return CODES[code]
    return 500


def _codes(fault: Mapping[str, Any]) -> list[str]:
    """Return the code, type and status of an error, and the reasons in its details."""
    details = fault.get("details")
    parts = [fault, *(part for part in (details if isinstance(details, list) else []) if isinstance(part, Mapping))]
    codes = [part.get(name) for part in parts for name in ("code", "type", "status", "reason")]
    return [str(code).lower() for code in codes if isinstance(code, str | int) and not isinstance(code, bool)]


def _denied(text: str) -> bool:
    """Return True if an error's body has a code that every request would meet."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return False
    parts = [body, body.get("error")] if isinstance(body, Mapping) else []
    return any(not DENIED.isdisjoint(_codes(part)) for part in parts if isinstance(part, Mapping))


def shortened(raw: RawReply) -> RawReply:
    """Return a reply with the message of a replaced error cut; secrets are to be struck out before."""
    return {**raw, "message": str(raw.get("message"))[:QUOTE]} if RESULT in raw else raw


def parsed_result(raw: RawReply) -> ParsedReply | None:
    """Parse a reply written in place of an error; return None for any other reply."""
    finishes: dict[str, Finish] = {"context": "context", "filter": "filter"}
    finish = finishes.get(str(raw.get(RESULT)))
    return None if finish is None else ParsedReply(text="", finish=finish, usage={"in": 0, "out": 0})
