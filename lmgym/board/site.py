"""The static site: pages that open from disk, with inline style and script that a policy admits by their hashes.

Templates escape everything that comes from an entry, and every score comes from a verdict.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from email.utils import format_datetime
from importlib.resources import files
from itertools import islice
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from markupsafe import Markup

import lmgym
from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board.curves import BaselineCurve, read_curve
from lmgym.board.entry import REFERENCES, Entry, RecordedEpisode, folder_name
from lmgym.board.history import Event
from lmgym.board.removed import RemovedEntry, archived, removed_entries
from lmgym.board.store import BoardStore, check_system
from lmgym.board.tables import Overall, Suite, TableRow, overall, permalink, ranked, read_suite
from lmgym.board.validate import check_name, check_protocol
from lmgym.board.verdict import Figure, Verdict, shares
from lmgym.errors import InstanceError, SubmissionError
from lmgym.evaluation.protocol import promise, protocol
from lmgym.evaluation.protocol import ranked as all_tasks
from lmgym.visible import visible

NEWS = 50  # events in the feed
LEADERS = 3  # systems in a card of the front page
ACTION = 1000  # characters of an action on the page of its entry
FAMILIES = {  # task folders by section of the front page; the rest are "Other tasks"
    "Text games": (
        "wordle",
        "guess_number",
        "twenty_questions",
        "guess_my_city",
        "textworld",
        "alfworld",
        "text_nav",
        "text_craft",
    ),
    "Web": ("webshop", "webforms", "miniwob"),
    "Desktop and phone": ("desktop", "phone"),
    "Pictures": ("click_target", "visual_search"),
    "Games": ("kuhn_poker", "leduc_poker", "tic_tac_toe", "connect_four", "mini_hanabi", "chess", "text_arena"),
    "Grid worlds": ("babyai", "frozen_lake", "maze", "sokoban"),
    "Software engineering": ("swe_repair", "swebench", "terminal"),
    "Tools": ("python_math",),
    "Users": ("retail_desk", "tau2", "doctor", "negotiate", "car_dealer", "recommender", "try_again", "mint"),
}
ADDRESS = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+(/[A-Za-z0-9._~%/-]*)?")


@dataclass(frozen=True)
class TaskPage:
    """A task's table and learning curves."""

    id: str
    name: str  # name of its folder
    family: str
    summary: str
    score: str  # meaning of a score of 1
    rows: Sequence[TableRow] = ()
    curves: Sequence[BaselineCurve] = ()

    @property
    def link(self) -> str:
        """Page, from the site's root."""
        return f"tasks/{self.name}.html"

    @property
    def systems(self) -> list[TableRow]:
        """Rows that are no references, best first."""
        return [row for row in self.rows if row.entry.policy.kind in ("model", "script", "human")]

    @property
    def leaders(self) -> list[TableRow]:
        """Best verified systems that play with the task's own players, for the front page."""
        verified = [row for row in self.systems if row.verdict.mark != "reported" and row.entry.user is None]
        return verified[:LEADERS]

    @property
    def scale(self) -> list[TableRow]:
        """Verified reference entries, in the order of `REFERENCES`."""
        rows = {row.entry.name: row for row in self.rows if row.verdict.mark != "reported" and row.entry.user is None}
        return [rows[name] for name in REFERENCES if name in rows]


@dataclass(frozen=True)
class Board:
    """Content of the site."""

    tasks: Sequence[TaskPage]
    suites: Sequence[tuple[Suite, Sequence[Overall]]]
    events: Sequence[Event]
    archives: Mapping[str, Any] = field(default_factory=dict)  # closed tables by name

    @property
    def rows(self) -> list[TableRow]:
        """Rows of all tasks."""
        return [row for task in self.tasks for row in task.rows]

    @property
    def families(self) -> list[tuple[str, list[TaskPage]]]:
        """Tasks with entries by section of the front page; sections without any are left out."""
        section = {folder: title for title, folders in FAMILIES.items() for folder in folders}
        titles = [*FAMILIES, "Other tasks"]
        by_title: dict[str, list[TaskPage]] = {title: [] for title in titles}
        for task in self.tasks:
            if task.rows:
                by_title[section.get(task.family, titles[-1])].append(task)
        return [(title, tasks) for title, tasks in by_title.items() if tasks]

    @property
    def current_suites(self) -> list[tuple[Suite, Sequence[Overall]]]:
        """Latest version of every suite."""
        latest = {
            suite.name: max(s.version for s, _ in self.suites if s.name == suite.name) for suite, _ in self.suites
        }
        return [(suite, systems) for suite, systems in self.suites if suite.version == latest[suite.name]]

    @property
    def old_suites(self) -> list[tuple[Suite, Sequence[Overall]]]:
        """Suites that a later version replaced."""
        current = {suite.title for suite, _ in self.current_suites}
        return [(suite, systems) for suite, systems in self.suites if suite.title not in current]

    @property
    def removed(self) -> list[RemovedEntry]:
        """Entries that left the board."""
        return removed_entries(self.events, self.archives)


def load(store: BoardStore) -> Board:
    """Read a leaderboard.

    Raises SubmissionError where entries, verdicts and history disagree, or a task asks for other episodes.
    """
    events = history.read(store.log)
    store.check_complete()
    rows: dict[str, list[TableRow]] = {}
    for path in entries.all_paths(store.entries):
        entry = entries.read(path)
        row = _row_of(entry, store.verdict(entry), events)
        rows.setdefault(entry.task, []).append(replace(row, replays=_replays(path, row)))
    everything = [row for table in rows.values() for row in table]
    for row in everything:
        check_system(row.entry, [other.entry for other in everything])
        store.check_copy(row.entry, events, audited=row.verdict.audit is not None)
    tasks = [
        TaskPage(
            id=spec.id,
            name=folder_name(spec.id),
            family=spec.name,
            summary=spec.summary,
            score=spec.score,
            rows=ranked(rows.pop(spec.id, [])),
            curves=[read_curve(path) for path in sorted((store.root / "curves" / folder_name(spec.id)).glob("*.json"))],
        )
        for spec in all_tasks()
    ]
    if rows:
        task = next(iter(rows))
        raise SubmissionError(
            f"there are entries on {task}, which is not a task of this version; run lmgym board archive {task} NEW"
        )
    every = [row for task in tasks for row in task.rows]
    suites = [read_suite(path) for path in sorted((store.root / "suites").glob("*.json"))]
    archives = {path.stem: json.loads(path.read_bytes()) for path in sorted((store.root / "archive").glob("*.json"))}
    return Board(tasks, [(suite, overall(suite, every)) for suite in suites], events, archives)


def _row_of(entry: Entry, verdict: Verdict | None, events: Sequence[Event]) -> TableRow:
    """Return an entry with its verdict, if the history has both and the task is as it was at verification."""
    name = f"{entry.name} on {entry.task}"
    if verdict is None:
        raise SubmissionError(f"{name} has no verdict as it is; run lmgym board grade")
    event = history.current(events, entry.task, entry.name)
    if event is None or event.entry != verdict.entry:
        raise SubmissionError(f"the history does not have {name} as it is")
    for word, logged, stated in (("mark", event.mark, verdict.mark), ("score", event.score, verdict.score.mean)):
        if logged != stated:
            raise SubmissionError(f"the history has {name} with {word} {logged}, but its verdict states {stated}")
    if event.verdict and event.verdict != parsing.digest(entries.canonical(verdict)):
        raise SubmissionError(f"the verdict on {name} is not the one in the history")
    if not event.verdict:  # old lines have no digest of the verdict, whose means must then follow from its episodes
        for word, value in shares(verdict.outcomes).items():
            if value != getattr(verdict, word):
                raise SubmissionError(f"the verdict on {name} states another {word} than its episodes have")
    if promise(entry.task) not in (None, verdict.promise):
        raise SubmissionError(f"{name} was verified before the task's golden episodes changed; run lmgym board grade")
    try:
        check_protocol(entry, protocol(entry.task))
    except InstanceError:
        pass  # the official data, which determines the number of instances, is not on this machine
    except SubmissionError as error:
        raise SubmissionError(f"{name}: {error}; run lmgym board archive {entry.task} {entry.task}") from None
    return TableRow(entry, verdict)


def _replays(path: Path, row: TableRow) -> tuple[RecordedEpisode, ...]:
    """Return the first solved and the first failed episode of the entry whose JSON file is `path`."""
    success = row.verdict.outcomes.success
    numbers = {success.index(value) for value in (True, False) if value in success}
    file = entries.episodes_path(path)
    lines = enumerate(islice(parsing.lines(file), max(numbers, default=-1) + 1))
    return tuple(entries.parse_episode(line, f"{file.name}, line {n + 1}") for n, line in lines if n in numbers)


def write(board: Board, out: Path, *, address: str = "") -> list[Path]:
    """Write all pages, `board.json` and the feed to `out`.

    Links of the feed start with `address`; without one the feed has no links, since readers follow only absolute ones.
    """
    if address and not ADDRESS.fullmatch(address):
        raise SubmissionError(
            f"--address must be the URL of the site, such as https://example.org/board; got {address!r}"
        )
    site = SiteWriter(out)
    for name in ("index.html", "tasks.html", "methodology.html", "history.html"):
        site.page(name, name, board=board)
    for task in board.tasks:
        if task.rows or task.curves:
            site.page(task.link, "task.html", board=board, task=task)
            for row in task.rows:
                site.page(row.link, "entry.html", board=board, task=task, row=row)
    for suite, systems in board.old_suites:
        site.page(f"suites/{suite.title}.html", "suite.html", board=board, suite=suite, systems=systems)
    for removed in board.removed:
        check_name(removed.left.name)
        link = permalink(removed.left.task, removed.left.name)
        site.page(link, "removed.html", board=board, removed=removed)
    for name, archive in board.archives.items():
        site.page(f"archive/{name}.html", "archive.html", board=board, archive=archive)
    site.put("board.json", json.dumps(as_json(board), indent=1, sort_keys=True, allow_nan=False) + "\n")
    site.page("feed.xml", "feed.html", items=_news(board), address=address.rstrip("/"))
    return site.written


class SiteWriter:
    """Renderer of templates into a folder."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.written: list[Path] = []
        folder = files("lmgym.leaderboards").joinpath("site")
        style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("board.css", "board.js"))
        self.templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(str(folder)),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self.templates.filters |= {
            "figure": three_digits,
            "percent": percent,
            "span": span,
            "number": number,
            "setting": setting,
            "action": action,
        }
        self.templates.globals |= {
            "style": Markup(style),
            "script": Markup(script),
            "policy": content_policy(style, script),
            "version": lmgym.__version__,
            "folder_name": folder_name,
        }

    def page(self, name: str, template: str, **values: Any) -> None:
        """Render a page; the template's `root` is the relative path to the site's root."""
        root = "../" * name.count("/")
        self.put(name, self.templates.get_template(template).render(root=root, **values))

    def put(self, name: str, text: str) -> None:
        """Write a file."""
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        self.written.append(path)


def content_policy(style: str, script: str) -> str:
    """Return a content-security policy that admits only this style and this script."""
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)]
    return (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def setting(value: Any) -> str:
    """Return a setting in one line: texts as they are, other values as JSON, unprintable characters escaped."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return visible(text)


def action(text: str) -> str:
    """Return an action as written, its unprintable characters escaped and its length limited."""
    more = f"\n… {len(text) - ACTION} more characters" if len(text) > ACTION else ""
    return "\n".join(setting(line) for line in text[:ACTION].split("\n")) + more


def three_digits(value: float | None) -> str:
    """Format a value with three decimals."""
    return "missing" if value is None else f"{value:.3f}"


def percent(value: float | None) -> str:
    """Format a share in per cent."""
    return "unknown" if value is None else f"{100 * value:.1f}"


def number(value: float | None) -> str:
    """Format a count with a unit; a dash if it is unknown."""
    if value is None:
        return "–"
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def span(figure: Figure) -> str:
    """Format the ends of an interval."""
    return f"{figure.low:.3f} to {figure.high:.3f}"


def as_json(board: Board) -> dict[str, Any]:
    """Return the board as plain values."""
    suites = {}
    for suite, systems in board.suites:
        suites[suite.title] = [
            {"name": each.name, "tasks": dict(each.tasks), "families": dict(each.families)}
            | {"score": None if each.score is None else msgspec.to_builtins(each.score)}
            for each in systems
        ]
    tasks = {task.id: [_row(row) for row in task.rows] for task in board.tasks if task.rows}
    return {"lmgym": lmgym.__version__, "tasks": tasks, "suites": suites}


def _row(row: TableRow) -> dict[str, Any]:
    verdict, entry = msgspec.to_builtins(row.verdict), row.entry
    stated = ("name", "mark", "level", "score", "success", "turns", "invalid", "tokens", "entry")
    declared = {name: verdict[name] for name in ("tokens_in", "tokens_out", "cost")}
    return {
        **{name: verdict[name] for name in (*stated, *(["figures"] if verdict["figures"] else []))},
        **{name: getattr(entry, name) for name in ("title", "tries", "user", "date", "identity")},
        **{name: getattr(row, name) for name in ("rank", "tied", "link")},
        "declared": {**declared, "parameters": entry.policy.parameters},
    }


def _news(board: Board) -> Iterable[dict[str, Any]]:
    """Yield the latest events as items of a feed."""
    tables = {line: f"archive/{name}.html" for line, name in archived(board.events).items() if name in board.archives}
    for event in list(reversed(board.events))[:NEWS]:
        day = date.fromisoformat(event.date)
        link = permalink(event.task, event.name) if event.name else tables.get(event.number, "")
        yield {
            "event": event,
            "link": link or "history.html",
            "date": format_datetime(datetime(day.year, day.month, day.day, tzinfo=UTC)),
            "guid": hashlib.sha256(entries.canonical(event)).hexdigest(),
        }
