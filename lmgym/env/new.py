"""`lmgym new`: writes the folder of a new task, which runs and passes every check as it is."""

from __future__ import annotations

import builtins
import importlib
import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from string import Template

from lmgym.env import card, golden
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError

TASKS = "lmgym.tasks"
SPEC_PY = '''"""Add two numbers."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="$id",
    entry_point="$package.env:$title",
    summary="Add two numbers.",
    max_turns=3,
    splits={"train": 5_000, "test": 5_000},
    score="1 when the sum was named within the turns",
    references={"null": 0.0, "oracle": 1.0},
    source="our own",
)
'''
ENV_PY = '''"""Show two numbers and ask for their sum."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from string import Template

from lmgym.env.actions import parse_number
from lmgym.env.env import Reply, TextEnv
from $package import SPEC

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))


class $title(TextEnv):
    """Name the sum of two numbers below 100 to score 1."""

    SPEC = SPEC

    def begin(self, index: int) -> Reply:
        """Open an instance, which depends on the split and the index alone and is unique."""
        first, second = divmod(2 * index + (self.split == "test"), 100)
        self.sum = first + second
        return Reply(PROMPT.substitute(first=first, second=second).strip())

    def act(self, action: str) -> Reply:
        """Answer any string; invalid actions get an answer too."""
        number = parse_number(action)
        if number is None:
            return Reply("Answer with one number.", valid=False)
        if number == self.sum:
            return Reply("Correct.", reward=1.0, done=True, score=1.0)
        return Reply("No, try again.", reward=-0.1)

    def oracle(self) -> Iterator[str]:
        """Name the sum."""
        yield str(self.sum)
'''
PROMPT_MD = "What is $$first + $$second? Answer with one number.\n"
README_MD = """# $title

Describe the observations, actions and rewards, and anything unusual.

- `env.py`: the rules. `begin` opens an instance and `act` answers an action; all other hooks are optional.
- `prompt.md`: the prompt. `lmgym check $id` lists what is missing; `lmgym golden $id --write` records its episodes.
"""
PLUGIN_MD = """
`import lmgym` finds the task if its package declares it in setup.cfg:

```
[options.entry_points]
lmgym.tasks =
    $name = $package
```
"""
TAKEN = {"Iterator", "PROMPT", "Reply", "SPEC", "Template", "TextEnv", *dir(builtins), *keyword.kwlist}  # in env.py
FILES = {"__init__.py": SPEC_PY, "env.py": ENV_PY, "prompt.md": PROMPT_MD, "README.md": README_MD}


def scaffold(name: str, folder: Path) -> Path:
    """Write the task `name` ("my_task" or "MyTask") into a new folder of `folder` and return it.

    `folder` is lmgym's own `tasks/`, or a package or any folder of a plug-in's author.
    """
    words = [word for word in re.split(r"_|(?<=[a-z0-9])(?=[A-Z])", name) if word]
    module, title = "_".join(words).lower(), "".join(word[0].upper() + word[1:] for word in words)
    if not (title.isidentifier() and title.isascii()) or keyword.iskeyword(module):
        raise InstanceError(f"{name!r} cannot name a task; use letters, digits and _, as in 'my_task' or 'MyTask'")
    if title in TAKEN:
        raise InstanceError(
            f"{name!r} cannot name a task: its class {title} would hide Python's or lmgym's; add a word"
        )
    target = folder.resolve() / module
    if target.exists():
        raise InstanceError(f"{target} exists; choose another name or remove it")
    root, package = _package(target)
    if package == module and find_spec(package) is not None:
        raise InstanceError(f"{name!r} cannot name a task: there is a package {module!r} already; add a word")
    namespace = "lmgym" if package.startswith(f"{TASKS}.") else package.partition(".")[0]
    values = {"name": module, "title": title, "package": package, "id": f"{namespace}/{title}-v0"}
    target.mkdir(parents=True)
    for file, text in FILES.items():
        plugin = PLUGIN_MD if file == "README.md" and namespace != "lmgym" else ""
        (target / file).write_text(Template(text + plugin).substitute(values), encoding="utf-8")
    sys.path.insert(0, str(root))
    try:
        importlib.invalidate_caches()
        spec: TaskSpec = importlib.import_module(package).SPEC
        card.write(spec)
        golden.write(spec)
    finally:
        sys.path.remove(str(root))
    return target


def _package(target: Path) -> tuple[Path, str]:
    """Return the folder to import from and the import name of a task's folder."""
    if target.parent == Path(importlib.import_module(TASKS).__path__[0]).resolve():
        return target.parents[1], f"{TASKS}.{target.name}"
    root = target.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    return root, ".".join(target.relative_to(root).parts)
