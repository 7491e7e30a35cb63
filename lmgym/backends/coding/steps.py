"""Steps of coding agents, carried out in a sandbox, and their observations as mini-swe-agent shows them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from importlib.resources import files
from string import Template

from lmgym.backends.sandbox import Result, Sandbox

SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
LONGEST, HALF = 10_000, 5_000  # characters of an output, and of its head and tail where it is longer
SECONDS = re.compile(r"\bin \d+\.\d+s\b")  # pytest's measured time, the one part of an output that always differs


def instructions(protocol: str, *, folder: str, seconds: float) -> str:
    """Return the part of a prompt that explains a protocol."""
    text = files(__package__).joinpath(f"protocol_{protocol}.md").read_text(encoding="utf-8")
    return Template(text).substitute(folder=folder, seconds=f"{seconds:g}").strip()


def perform(sandbox: Sandbox, kind: str, arguments: Mapping[str, str]) -> tuple[bool, str, str | None]:
    """Do a step other than the end; return if it was valid, the observation, and what a command submits, if it does."""
    if kind == "error":
        return False, arguments["message"], None
    if kind in ("run", "search"):
        words = ["grep", "-rnE", "--exclude-dir=.git", "-e", arguments.get("pattern", ""), "--"]
        search = shlex.join([*words, arguments.get("path", ".")])
        try:
            result = sandbox.run(arguments["command"] if kind == "run" else search, split=kind == "search")
        except OSError as error:  # the working folder is gone
            return True, f"<returncode>-1</returncode>\n<exception>\n{error.strerror or error}\n</exception>", None
        if kind == "run":
            return True, rendered(result), submitted(result)
        text = result.text + result.stderr.decode("utf-8", "replace")  # of files that cannot be read, beside the hits
        return result.code < 2 or bool(result.stdout), shortened(text) or "No match.", None
    try:
        data = sandbox.read(arguments["path"])
    except (OSError, ValueError) as error:
        return False, f"{arguments['path'][:200]}: {getattr(error, 'strerror', None) or error}", None
    if kind == "view":
        text = data.decode("utf-8", "replace")
        lines = [f"{number:5d}  {line}" for number, line in enumerate(text.splitlines(), start=1)]
        return True, shortened("\n".join(lines)), None
    old = arguments["old"].encode("utf-8", "surrogatepass")
    if (count := data.count(old) if old else 0) != 1:
        return False, f"`old` occurs {count} times in {arguments['path'][:200]}; it must occur once.", None
    try:
        sandbox.write(arguments["path"], data.replace(old, arguments["new"].encode("utf-8", "replace")))
    except OSError as error:
        return False, f"{arguments['path'][:200]}: {error.strerror or error}", None
    return True, "Edited.", None


def rendered(result: Result) -> str:
    """Return a command's result as mini-swe-agent shows it."""
    text = SECONDS.sub("in 0.00s", result.text)
    if result.timed_out:
        reason = "<exception>\nThe command was stopped after its time limit.\n</exception>"
        return f"<returncode>-1</returncode>\n{reason}\n{_output(text)}"
    return f"<returncode>{result.code}</returncode>\n{_output(text)}"


def _output(text: str) -> str:
    if len(text) < LONGEST:
        return f"<output>\n{text}</output>"
    elided = len(text) - 2 * HALF
    return (
        "<warning>The output was too long.</warning>\n"
        f"<output_head>\n{text[:HALF]}</output_head>\n<elided_chars>{elided} characters elided</elided_chars>\n"
        f"<output_tail>\n{text[-HALF:]}</output_tail>"
    )


def shortened(text: str) -> str:
    """Return a text, or its head and tail if it is too long."""
    return text if len(text) < LONGEST else f"{text[:HALF]}\n[{len(text) - 2 * HALF} characters elided]\n{text[-HALF:]}"


def submitted(result: Result) -> str | None:
    """Return what a command submits: its output behind the line that says so; None if it does not submit."""
    first, _, rest = result.text.lstrip().partition("\n")
    return rest if result.code == 0 and first.strip() == SUBMIT else None
