"""WebArena's official tasks: which can be played here, and with whose sign-in.

What cannot be judged or begun here is left out when the file is read, and counted: nothing of it stops a run.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.webforms.evaluators import needs_judge, strange

LOG = logging.getLogger(__name__)
DATA = "WEBARENA_DATA"  # environment variable: the official test.raw.json
SIGN_INS = "WEBARENA_AUTH"  # environment variable: the folder of stored sign-ins; .auth beside the tasks where unset
PLACES = ("SHOPPING", "SHOPPING_ADMIN", "REDDIT", "GITLAB", "MAP", "WIKIPEDIA", "HOMEPAGE")  # WA_SHOPPING=http://...
NEEDED = ("task_id", "sites", "start_url", "intent", "eval")

Item = Mapping[str, Any]


@dataclass(frozen=True)
class Chosen:
    """The playable tasks, and the number left out by reason."""

    tasks: tuple[Item, ...] = ()
    left_out: Mapping[str, int] | None = None

    def __str__(self) -> str:
        """Return a summary in one line."""
        reasons = "; ".join(f"{count} {reason}" for reason, count in (self.left_out or {}).items())
        return f"{len(self.tasks)} tasks can be played" + (f", left out: {reasons}" if reasons else "")


def chosen(*, judged: bool) -> Chosen:
    """Return the playable tasks of $WEBARENA_DATA; none if it is not set."""
    path = os.environ.get(DATA)
    if not path:
        return Chosen()
    return _chosen(path, tuple((name, address(name)) for name in PLACES), str(_folder()), judged)


def address(name: str) -> str:
    """Return a site's address, or "" if it is not configured."""
    return os.environ.get(f"WA_{name}", "").rstrip("/")


def signed_in(item: Item) -> Mapping[str, Any] | None:
    """Return the stored sign-in of a task in Playwright's format, or None."""
    return _stored(_folder() / Path(name).name) if (name := item.get("storage_state")) else None


def _folder() -> Path:
    return Path(os.environ.get(SIGN_INS) or Path(os.environ.get(DATA, "")).parent / ".auth")


@cache
def _chosen(path: str, places: tuple[tuple[str, str], ...], folder: str, judged: bool) -> Chosen:
    addresses, tasks, why = dict(places), [], Counter[str]()
    items = _placed(path, places)
    for item in items:
        if reason := _hindrance(item, addresses, Path(folder), judged):
            why[reason] += 1
        else:
            tasks.append(item)
    made = Chosen(tuple(tasks), dict(why.most_common()))
    if items and not tasks:
        raise InstanceError(f"${DATA} {path}: {made}")
    LOG.log(logging.WARNING if why else logging.INFO, "$%s %s: %s", DATA, path, made)
    return made


def _hindrance(item: Item, addresses: Mapping[str, str], folder: Path, judged: bool) -> str:
    """Return why a task cannot be played here, or ""."""
    if not item["eval"]["eval_types"] or not item["start_url"]:
        return "have no evaluator, or nowhere to begin"
    if odd := strange(item):
        return f"name {odd}, which there is none of"
    if needs_judge(item) and not judged:
        return "need a judge"
    for site in item["sites"]:
        if not addresses.get(site.upper()):
            return f"need the site {site}: set $WA_{site.upper()}"
    if name := item.get("storage_state"):
        state = folder / Path(name).name
        return "" if state.is_file() and _stored(state) else f"begin signed in, and {state} is not there (${SIGN_INS})"
    return ""


@cache
def _placed(path: str, places: tuple[tuple[str, str], ...]) -> tuple[Item, ...]:
    """Read the official file and fill in the sites' addresses."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        for name, url in places:
            text = text.replace(f"__{name}__", url)
        items = json.loads(text)
        if not isinstance(items, list):
            raise TypeError("it is no list")
        if lacking := next((name for item in items for name in NEEDED if name not in item), None):
            raise KeyError(lacking)
        return tuple(items)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InstanceError(f"${DATA} {path} is not in the layout of WebArena's test.raw.json: {error!r}") from error


@cache
def _stored(path: Path) -> Mapping[str, Any]:
    """Read a stored sign-in."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        parts = {"cookies": ("name", "value", "domain", "path"), "origins": ("origin", "localStorage")}
        for kind, needed in parts.items():
            if lacking := next((name for part in state[kind] for name in needed if name not in part), None):
                raise KeyError(lacking)
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise InstanceError(f"{path} is no storage state as Playwright writes it: {error!r}") from error
    return {kind: state[kind] for kind in parts}
