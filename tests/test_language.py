"""The rules of language that a machine can hold: docstrings, help texts, class names and vague variable names."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lmgym", "tasks", "baselines", "leaderboards")
CLAUSE = re.compile(r"(What|Whether|Of|That|Those|Who|How|Where|Which|Whose|When)\b")
FRAGMENT = re.compile(r"(Of|What|Whether|In|By|As|At|To|For)\b")
DATA = "packages"  # repositories that a task repairs
VAGUE = {"found", "said", "shown", "asked", "known"}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def trees(*folders):
    """Return the syntax tree of every Python file below `folders`, by its path from the root."""
    paths = sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py") if DATA not in path.parts)
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def nodes(*folders):
    return [(path, node) for path, tree in trees(*folders).items() for node in ast.walk(tree)]


def test_docstrings_open_with_a_verb_or_a_noun():
    wrong = [
        f"{path}:{getattr(node, 'lineno', 1)} {text.splitlines()[0]}"
        for path, node in nodes(*FOLDERS, "tests")
        if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)) and CLAUSE.match(text)
    ]
    assert wrong == []


def test_help_texts_are_no_fragments():
    wrong = [
        f"{path}:{node.value.lineno} {node.value.value}"
        for path, node in nodes(*FOLDERS)
        if isinstance(node, ast.keyword)
        and node.arg == "help"
        and isinstance(node.value, ast.Constant)
        and FRAGMENT.match(str(node.value.value))
    ]
    assert wrong == []


def test_a_class_name_means_one_class():
    homes = defaultdict(list)
    for path, node in nodes(*FOLDERS):
        if isinstance(node, ast.ClassDef) and node.name != "Args":  # each baseline has its own Args
            homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_variables_are_named_by_nouns():
    wrong = [
        f"{path}:{node.lineno} {name}"
        for path, node in nodes(*FOLDERS)
        for name in [node.id if isinstance(node, ast.Name) else node.arg if isinstance(node, ast.arg) else ""]
        if name in VAGUE and not (isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store))
    ]
    assert wrong == []
