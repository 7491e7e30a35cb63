"""A user by rules for tau2-bench's scenarios, which are written for models: a stand-in, not comparable with one.

It opens with the reason for the call, tells `known_info` only when asked, never `unknown_info`, says yes when asked to
confirm, uses its tools when told to, and ends the dialogue when it is done, transferred or at the end of its patience.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping
from typing import Any

from lmgym.backends.user import hearing
from lmgym.backends.user.endings import OUT_OF_SCOPE, STOP, TRANSFER
from lmgym.env.actions import parse_function_call

PATIENCE = 5  # answers in a row that told nothing
PERSONS = (  # second person to first, in order
    (r"\bYou are\b", "I am"),
    (r"\byou are\b", "I am"),
    (r"\bYou're\b|\byou're\b", "I'm"),
    (r"\bYou've\b|\byou've\b", "I've"),
    (r"\bYou'd\b|\byou'd\b", "I'd"),
    (r"\byourself\b", "myself"),
    (r"\bYour\b", "My"),
    (r"\byour\b", "my"),
    (r"\b(to|for|with|of|from|at|by|on|give|tell|send|help) you\b", r"\1 me"),
    (r"\bYou\b|\byou\b", "I"),
)
TOPICS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "identity": r"\bidentit|\bverif|\baccount|\bwho\b",
        "name": r"\bname\b",
        "email": r"\be-?mail",
        "zip": r"\bzip\b|\bpost",
        "user id": r"\buser id\b",
        "phone": r"\bphone",
        "order": r"\border",
        "reservation": r"\breservation|\bconfirmation",
        "place": r"(?<!mail )\baddress|\bwhere\b|\bliv(e|ing)\b|\blocat|\babroad|\bcountry|\btravel",
        "money": r"\bpay|\bcard\b|\brefund",
        "date": r"\bdate\b|\bwhen\b|\bday\b|\bbirth",
    }.items()
}
ASIDE = re.compile(  # what the agent does itself, which asks for nothing
    r"\bwhile i\b[^,.;:?!]*|"
    r"\b(let me|i(?:'ll| will| am going to|'m going to| need to| have to))( now| just| first)? "
    r"(check|look|pull|review|see|open)\b[^,.;:?!]*"
)
SHAPES: Mapping[str, re.Pattern[str]] = {  # facts that a sentence may state without naming their topic
    "name": re.compile(r"^i(?: am|'m)\b"),
    "email": re.compile(r"\w@\w"),
    "zip": re.compile(r"\bliv(e|ing) in\b.*\b\d{5}\b"),
    "user id": re.compile(r"\b[a-z]+_[a-z]+_\d{3,}\b"),
}
IDENTITY = ("name", "email", "zip", "user id", "phone")
ON_OFF = r"(turn|switch|toggle|enable|disable|activat|deactivat|put|set)\w*"
PHRASES: tuple[tuple[str, str], ...] = (  # what an agent may ask for, and the tool; the first that fits is used
    (r"status bar", "check_status_bar"),
    (r"speed ?test|test (your|the) (internet|data )?speed", "run_speed_test"),
    (r"re-?seat|(remove|take out|re-?insert)\b.*\bsim", "reseat_sim_card"),
    (r"\bsim\b", "check_sim_status"),
    (rf"{ON_OFF} .*data saver|data saver.*{ON_OFF}", "toggle_data_saver_mode"),
    (r"data saver|data restriction", "check_data_restriction_status"),
    (rf"{ON_OFF} .*roaming|roaming.*{ON_OFF}", "toggle_roaming"),
    (r"reset.*apn|apn.*reset", "reset_apn_settings"),
    (r"\bapn\b", "check_apn_settings"),
    (rf"{ON_OFF} .*wi-?fi calling|wi-?fi calling.*{ON_OFF}", "toggle_wifi_calling"),
    (r"wi-?fi calling", "check_wifi_calling_status"),
    (rf"{ON_OFF} .*wi-?fi", "toggle_wifi"),
    (r"wi-?fi", "check_wifi_status"),
    (r"(disconnect|turn off|switch off|disable)\b.*vpn|vpn.*(disconnect|off)", "disconnect_vpn"),
    (r"\bconnect\b.*vpn", "connect_vpn"),
    (r"\bvpn\b", "check_vpn_status"),
    (rf"{ON_OFF} .*(airplane|flight) mode|(airplane|flight) mode.*{ON_OFF}", "toggle_airplane_mode"),
    (rf"{ON_OFF} .*(mobile|cellular) data|(mobile|cellular) data.*{ON_OFF}", "toggle_data"),
    (r"\b(mms|picture message)", "can_send_mms"),
    (r"installed apps|which apps", "check_installed_apps"),
    (r"reboot|restart", "reboot_device"),
    (r"(make|complete|accept|pay)\b.*(payment|bill)", "make_payment"),
    (r"payment request", "check_payment_request"),
    (r"network mode|preferred network", "check_network_mode_preference"),
    (r"network|signal|service|airplane|roaming|mobile data", "check_network_status"),
    (r"notification", "check_notifications"),
)
MODES = {"4g_5g": "4g_5g_preferred", "5g": "4g_5g_preferred", "4g": "4g_only", "3g": "3g_only", "2g": "2g_only"}
CALL = re.compile(r"\b([a-z_]{5,40})\(([^()]{0,400})\)")


class ScriptedUser:
    """The user of one scenario; `tools` are the names of the tools that it has."""

    def __init__(self, scenario: Mapping[str, Any], tools: Container[str] = ()) -> None:
        instructions = scenario.get("instructions") or ""
        parts = {"reason_for_call": instructions} if isinstance(instructions, str) else instructions
        self.reason = first_person(parts.get("reason_for_call") or "I need help.")
        self.details = sentences(first_person(parts.get("known_info") or ""))
        self.conditions = sentences(first_person(parts.get("task_instructions") or ""))
        self.tools = tools
        self.opened = self.insisted = False
        self.told: set[str] = set()
        self.idle = 0
        self.left = False  # without being helped

    def opening(self) -> str:
        """Return the first message."""
        self.opened = True
        return self.reason

    def reply(self, words: str) -> str:
        """Answer the agent's words with words, a tool call, or words with the token that ends the dialogue."""
        if not self.opened:
            return self.opening()
        text = hearing.heard(words)
        if hearing.TRANSFERRED.search(text):
            return TRANSFER
        if call := self._tool_call(words, text):
            return call
        if hearing.CONFIRM.search(text) and not hearing.ANYTHING_ELSE.search(text):
            return "Yes, please go ahead."
        if hearing.ANYTHING_ELSE.search(text) or (hearing.DONE.search(text) and "?" not in text):
            return f"No, that is all. Thank you. {STOP}"
        if details := self._details(text):
            self.idle = 0
            return details
        if hearing.DECLINE.search(text):
            if self.insisted or not self.conditions:
                return f"All right, then not. {STOP}"
            self.insisted = True
            return " ".join(self.conditions)
        self.idle += 1
        if self.idle > PATIENCE:
            self.left = True
            return f"I cannot say more than that. {OUT_OF_SCOPE}"
        return "I do not know more than what I told you." if hearing.requests(text) else "Can you help me with that?"

    def after_tool(self, result: str) -> str:
        """Report what a tool showed."""
        self.idle = 0
        return f"I did that. It shows: {result}"

    def _details(self, text: str) -> str:
        """Return details that the message asks for: those on its topics, or all for an open request without one."""
        text = ASIDE.sub("", text)
        anything = hearing.open_request(text)
        topics = hearing.topics(text, TOPICS) if anything or hearing.requests(text) else []
        if not topics and not anything:
            return ""
        left = [each for each in self.details if each not in self.told]
        chosen = [each for each in left if not topics or any(_is_about(each, topic) for topic in topics)]
        self.told.update(chosen)
        return " ".join(chosen)

    def _tool_call(self, words: str, text: str) -> str:
        for match in CALL.finditer(words):
            call = parse_function_call(match[0]) if match[1] in self.tools else None
            if call is not None:
                return _call(call.name, call.arguments)
        if not self.tools or not hearing.requests(text):
            return ""
        mode = next((mode for key, mode in MODES.items() if key in text.replace("/", "_")), None)
        if mode and re.search(r"(set|change|switch|select)\b.*(network|mode|prefer)", text):
            return _call("set_network_mode_preference", {"mode": mode}) * ("set_network_mode_preference" in self.tools)
        if "permission" in text and "check_app_permissions" in self.tools:
            return _permission_call(text)
        name = next((tool for pattern, tool in PHRASES if tool in self.tools and re.search(pattern, text)), "")
        return _call(name, {}) if name else ""


def first_person(text: str) -> str:
    """Return a scenario's text, written to "you", as the user says it."""
    for pattern, word in PERSONS:
        text = re.sub(pattern, word, text)
    return text.strip()


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text."""
    parts = re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n+", text)
    return [part.strip() for part in parts if part.strip()]


def _is_about(sentence: str, topic: str) -> bool:
    lowered = sentence.lower()
    if topic == "identity":
        return any(_is_about(sentence, each) for each in IDENTITY)
    return any(topic in rules and rules[topic].search(lowered) is not None for rules in (TOPICS, SHAPES))


def _permission_call(text: str) -> str:
    app = "browser" if "browser" in text else "messaging"
    permission = next(
        (each for each in ("storage", "sms", "phone", "network") if re.search(rf"\b{each}\b", text)), None
    )
    if permission and re.search(r"\b(grant|give|allow|enable|turn on)\b", text):
        return _call("grant_app_permission", {"app_name": app, "permission": permission})
    return _call("check_app_permissions", {"app_name": app})


def _call(name: str, arguments: Mapping[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": dict(arguments)})
