"""Repositories in sandboxes: the box they stand in, how their files get there, and the first and only commit."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lmgym.backends.coding.files import EPOCH
from lmgym.backends.sandbox import Box, Sandbox, SandboxLimits
from lmgym.errors import BackendError, MissingExtra

ROOT = "/testbed"
TOOLS = "/opt/tools"  # pytest and what it needs, from the Python of lmgym
TOOL_NAMES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
HIDDEN = ("ensurepip", "lib2to3")  # parts of the standard library that carry copies of libraries, or nothing useful
SECONDS = 60.0  # of one command
AUTHOR = ("maintainer", "maintainer@example.org")
START = (
    "git init -q --template= -b main . && git add -A && git commit -q -m 'Current state' && rm -rf .git/logs "
    "&& find . -exec touch -h -d @1700000000 {} +"
)
IGNORED = "__pycache__/\n*.py[cod]\n.pytest_cache/\n"
PYTEST_SETTINGS = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["."]\n'


@cache
def box(*plugins: str) -> Box:
    """Return the box of a repository; `plugins` are host paths of pytest plugins that it can load."""
    trees = {f"{TOOLS}/{path.name}": path for name in TOOL_NAMES for path in [_installed(name)]}
    empty = Path(__file__).with_name("empty")
    library = f"lib/python{sys.version_info.major}.{sys.version_info.minor}"
    trees |= {
        f"/opt/python/{library}/{name}": empty for name in HIDDEN if Path(sys.base_prefix, library, name).is_dir()
    }
    trees |= {f"{TOOLS}/{Path(plugin).name}": Path(plugin) for plugin in plugins}
    environment = {
        "PYTHONPATH": TOOLS,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "COLUMNS": "100",
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {
            f"GIT_{role}_NAME": AUTHOR[0],
            f"GIT_{role}_EMAIL": AUTHOR[1],
            f"GIT_{role}_DATE": f"{EPOCH} +0000",
        }
    return Box(limits=SandboxLimits(seconds=SECONDS), folder=ROOT, trees=trees, environment=environment)


def _installed(name: str) -> Path:
    """Return the folder or file of an installed package."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise MissingExtra(f"repositories are tested with {name}: pip install 'lmgym[swe]'")
    path = Path(spec.origin)
    return path.parent if path.name == "__init__.py" else path


def commit(sandbox: Sandbox) -> str:
    """Make a repository of the folder whose only commit holds the present files; return the commit's id."""
    done = sandbox.run(f"{START} && git rev-parse HEAD")
    if done.code:
        raise BackendError(f"git does not start in the sandbox: {done.text.strip()[-300:]}")
    return done.text.strip()
