"""math-verify in a sandbox of its own: sympy never ends on some answers, and needs all memory for others."""

from __future__ import annotations

from functools import cache
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

from lmgym.backends.sandbox import Box, Sandbox, SandboxLimits, open_sandbox
from lmgym.env.answers import boxed
from lmgym.errors import BackendError, MissingExtra

PACKAGES = ("math_verify", "latex2sympy2_extended", "antlr4", "sympy", "mpmath")
ANTLR = "antlr4-python3-runtime"
FOLDER = "/opt/packages"
SECONDS = 10.0
START = """
from math_verify import parse, verify
def same(answer, truth):
    read = lambda text: parse("\\\\boxed{" + text + "}", parsing_timeout=None)
    return verify(read(truth), read(answer), timeout_seconds=None)
"""


@cache
def box() -> Box:
    """Return the box with math-verify and what it needs. Raises MissingExtra where a package is not installed."""
    trees = {}
    for name in PACKAGES:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise MissingExtra(f"answers are compared by {name}: pip install 'lmgym[math]'")
        trees[f"{FOLDER}/{name}"] = Path(spec.origin).parent
    notes = next(file for file in distribution(ANTLR).files or () if file.name == "METADATA")
    folder = Path(str(notes.locate())).parent  # math-verify asks for the version
    trees[f"{FOLDER}/{folder.name}"] = folder
    limits = SandboxLimits(seconds=SECONDS, processes=16)
    return Box(limits=limits, trees=trees, environment={"PYTHONPATH": FOLDER})


class Verifier:
    """Compares answers; its sandbox starts with the first."""

    def __init__(self) -> None:
        self.sandbox: Sandbox | None = None

    def same(self, answer: str, truth: str) -> bool:
        """Return True if math-verify takes an answer, with balanced braces, for the truth within ten seconds."""
        if boxed(f"\\boxed{{{answer}}}") != answer.strip():  # a brace too many would hold a second answer
            return False
        if self.sandbox is None or self.sandbox.closed:
            self.sandbox = open_sandbox(box())
            self.session = self.sandbox.python(split=True)
            self.loaded = False
        if not self.loaded:
            started = self.session.run(START, timeout=60.0)
            if started.code:
                raise BackendError(f"math-verify does not start: {started.stderr.decode('utf-8', 'replace')[-300:]}")
        result = self.session.run(f"print(same({answer!r}, {truth!r}))")
        self.loaded = not result.ended
        return result.text.strip() == "True"

    def close(self) -> None:
        """Remove the sandbox."""
        sandbox, self.sandbox = self.sandbox, None
        if sandbox is not None:
            sandbox.close()
