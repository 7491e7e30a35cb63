"""The Python that a policy's programs run in: a session in a sandbox of the environment's own."""

from __future__ import annotations

from dataclasses import dataclass

from lmgym.backends.sandbox import Box, Result, SandboxLimits, open_sandbox
from lmgym.errors import BackendError

LONGEST = 20_000  # characters of a program
START = 120.0  # seconds in which Python must be there, outside of the limit of programs
ANSWER = "/work/.final_answer"  # written by the helper
HELPER = f"""def final_answer(value):
    with open({ANSWER!r}, "w") as file:
        file.write(str(value))
"""


@dataclass(frozen=True)
class ProgramRun:
    """The outcome of a program."""

    output: str
    error: str = ""
    answer: str | None = None  # given by final_answer

    @property
    def text(self) -> str:
        """Output and error together."""
        return "\n".join(part for part in (self.output.strip("\n"), self.error.strip("\n")) if part)


class Interpreter:
    """A Python session in a sandbox, which `reset` empties and programs cannot leave."""

    def __init__(self, *, seconds: float, helper: bool, fresh: bool) -> None:
        """Start the sandbox. `fresh`: every program gets a Python of its own, as a script does."""
        self.seconds, self.helper, self.fresh = seconds, helper, fresh
        limits = SandboxLimits(seconds=seconds, processes=16, disk=16 << 20, files=1000, output=1 << 16)
        self.sandbox = open_sandbox(Box(limits=limits))
        self.empty = self.sandbox.save()
        self._start()

    def _start(self) -> None:
        self.session = self.sandbox.python(split=True)
        self.used = self.started = False

    def reset(self) -> None:
        """Forget all variables, files and processes."""
        if self.used:
            self.sandbox.kill()
            if self.sandbox.save() != self.empty:  # restoring costs more than looking
                try:
                    self.sandbox.restore(self.empty)
                except OSError as error:
                    raise BackendError(f"the sandbox cannot be emptied: {error}") from error
            self._start()

    def run(self, code: str) -> ProgramRun:
        """Run a program. Whatever it does wrong is its error."""
        if len(code) > LONGEST:
            return ProgramRun("", f"The program has {len(code)} characters; {LONGEST} are allowed.")
        self.used = True
        if self.fresh and self.started:
            self.session.close()
            self.started = False
        if not self.started and (fault := self._fault()):
            return ProgramRun("", fault)
        result = self.session.run(code)
        self.started = not result.ended
        return ProgramRun(*_texts(result, self.seconds), self._answer())

    def _fault(self) -> str:
        """Wait for Python; return "", or why it did not start beside the files and processes of earlier programs.

        Raises BackendError if it does not start without them either.
        """
        fault = self._start_fault()
        if fault:
            self.reset()
            if again := self._start_fault():
                raise BackendError(f"Python does not start in the sandbox: {again}")
        self.started = True
        return fault

    def _start_fault(self) -> str:
        try:
            result = self.session.run(HELPER if self.helper else "pass", timeout=START)
        except OSError as error:  # no process can be started
            return f"OSError: {error.strerror or error}"
        return "\n".join(_texts(result, START)).strip() if result.timed_out or result.ended else ""

    def close(self) -> None:
        """Remove the sandbox."""
        self.sandbox.close()

    def _answer(self) -> str | None:
        if not self.helper:
            return None
        try:
            return self.sandbox.read(ANSWER, limit=1000).decode("utf-8", "replace")
        except OSError:
            return None


def _texts(result: Result, seconds: float) -> tuple[str, str]:
    """Return the output and the error of a program; how far it came before its time was over is chance."""
    if result.timed_out:
        return "", f"TimeoutError: stopped after {seconds:g} seconds"
    error = result.stderr.decode("utf-8", "replace")
    if result.ended and not error:
        error = f"Python ended with code {result.code}"
    return result.text, error
