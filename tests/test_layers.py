"""The table "Layers" of the design, and the sizes of files and functions, held over the syntax trees."""

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("lmgym", "tasks", "baselines", "leaderboards")
ALL = (
    "core",
    "env",
    "backends",
    "task",
    "registry",
    "checks",
    "policy",
    "rollout",
    "evaluation",
    "train",
    "viewer",
    "board",
    "serve",
)
LAYERS = {  # module or package -> its layer; the longest name wins
    "lmgym": "root",
    "lmgym.types": "core",
    "lmgym.errors": "core",
    "lmgym.cache": "core",
    "lmgym.hosts": "core",
    "lmgym.visible": "core",
    "lmgym.policy.base": "core",
    "lmgym.policy.endpoints.calls": "core",
    "lmgym.policy.endpoints.secrets": "core",
    "lmgym.env": "env",
    "lmgym.env.registry": "registry",
    **dict.fromkeys([f"lmgym.env.{name}" for name in ("card", "checks", "golden", "new", "testing")], "checks"),
    "lmgym.backends": "backends",
    "lmgym.tasks": "task",
    "lmgym.policy": "policy",
    "lmgym.rollout": "rollout",
    "lmgym.evaluation": "evaluation",
    "lmgym.train": "train",
    "lmgym.viewer": "viewer",
    "lmgym.board": "board",
    "lmgym.serve": "serve",
    "lmgym.leaderboards": "top",
    "lmgym.baselines": "top",
    "lmgym.api": "top",
    "lmgym.cli": "top",
    "lmgym.doctor": "top",
    "lmgym.__main__": "top",
    "lmgym.interop": "top",
}
MAY_IMPORT = {  # every layer may import itself, a task only its own folder
    "core": (),
    "env": ("core",),
    "backends": ("core",),
    "task": ("core", "env", "backends"),
    "registry": ("core", "env", "task"),
    "checks": ("core", "env", "registry"),  # what is shipped to test a task
    "policy": ("core",),
    "rollout": ("core", "env", "registry"),
    "evaluation": ("core", "policy", "rollout", "registry"),
    "train": ("core", "policy", "rollout", "evaluation", "root"),  # root: the version's number
    "viewer": ("core", "env", "rollout", "evaluation"),
    "board": ("core", "policy", "rollout", "evaluation", "registry", "root"),
    "serve": ("core", "env", "backends", "rollout", "registry"),  # environments for others; backends: the wire's words
    "root": ("registry",),
    "top": (*ALL, "root", "top"),
}
TORCH = ("policy", "train", "top")  # layers that know tensors; policy/base is core
HEAVY = ("torch", "transformers", "tokenizers", "datasets", "playwright", "docker", "openai", "matplotlib", "textworld")
FILE_LINES, FUNCTION_LINES = 400, 70


@cache
def sources():
    """Every module of the library by its import name: path and syntax tree."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if {"packages", "own"} & set(path.parts):  # repositories that a task repairs, folders of tasks in a shell
                continue
            parts = path.relative_to(ROOT).with_suffix("").parts
            parts = parts if folder == "lmgym" else ("lmgym", *parts)
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            found[name] = path, ast.parse(path.read_text(encoding="utf-8"))
    return found


def layer(module):
    while module not in LAYERS:
        assert module, "no name of lmgym"
        module = module.rpartition(".")[0]
    return LAYERS[module]


def of_type_checking(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def nodes(tree, *, inside_functions):
    """Walk a tree, into functions or not; what only a type checker reads is left out."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if of_type_checking(node) or (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not inside_functions
        ):
            continue
        waiting.extend(ast.iter_child_nodes(node))


def imports(module, *, inside_functions):
    """Modules that `module` imports; `from package import name` is the module `package.name` where that is one."""
    path, tree = sources()[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes(tree, inside_functions=inside_functions):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            up = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*up, *([node.module] if node.module else [])])
            yield from (name if (name := f"{base}.{alias.name}") in sources() else base for alias in node.names)


def task_of(module):
    return module.split(".")[2] if module.count(".") > 1 else ""


def test_who_may_import_whom():
    wrong = []
    for module in sources():
        mine = layer(module)
        for other in sorted({name for name in imports(module, inside_functions=True) if name.startswith("lmgym")}):
            theirs = layer(other)
            own = theirs == mine and (mine != "task" or task_of(module) == task_of(other))
            if not own and theirs not in MAY_IMPORT[mine]:
                wrong.append(f"{module} ({mine}) imports {other} ({theirs})")
    assert wrong == []


def test_the_registry_imports_specs_only():
    modules = imports("lmgym.env.registry", inside_functions=True)
    assert [name for name in modules if name.startswith("lmgym.tasks.") and name.count(".") > 2] == []


@pytest.mark.parametrize(
    ("packages", "inside_functions"),
    [(("torch", "transformers", "tokenizers"), True), (HEAVY, False)],
    ids=["only policies and training know tensors", "heavy packages are imported inside functions"],
)
def test_layers_without_tensors(packages, inside_functions):
    wrong = [
        f"{module} imports {name}"
        for module in sources()
        if layer(module) not in TORCH
        for name in imports(module, inside_functions=inside_functions)
        if name.partition(".")[0] in packages
    ]
    assert wrong == []


def test_no_module_imports_itself_around_a_corner():
    edges = {
        module: sorted({name for name in imports(module, inside_functions=False) if name in sources()} - {module})
        for module in sources()
    }
    done, path = set(), []

    def visit(module):
        assert module not in path, " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            path.append(module)
            for other in edges[module]:
                visit(other)
            path.pop()
            done.add(module)

    for module in edges:
        visit(module)


def test_files_are_short():
    long = {module: len(path.read_text().splitlines()) for module, (path, _) in sources().items()}
    assert {module: lines for module, lines in long.items() if lines > FILE_LINES} == {}


def test_functions_are_short():
    long = {
        f"{module}.{node.name}": lines
        for module, (_, tree) in sources().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


@pytest.mark.parametrize("module", ["lmgym.env.env", "lmgym.tasks.wordle.env", "lmgym.types"])
def test_modules_are_found_under_their_import_names(module):
    assert module in sources()
    assert layer(module) in MAY_IMPORT
