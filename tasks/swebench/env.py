"""SWE-bench as an environment: a container of the instance's image, a protocol, and the judge at the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

from lmgym.backends.coding.patches import difference
from lmgym.backends.coding.steps import instructions, perform
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.env.coding import AgentStep
from lmgym.env.coding_env import FINISH, SUBMISSION, CodingEnv
from lmgym.env.env import Reply
from lmgym.tasks.swebench import SPEC
from lmgym.tasks.swebench import predictions as prediction_file
from lmgym.tasks.swebench.instances import Instance, load
from lmgym.tasks.swebench.judge import LIMITS, ROOT, box, insert_bug, judge, one_commit, parser

CHANGES = "git add -A && git diff --cached"
BASH_ENDING = f"""To submit, write your changes to a file by `{CHANGES} > {SUBMISSION}`, then run
`{FINISH}`."""
ENDINGS = {"bash": BASH_ENDING, "tools": "To submit, call submit().", "r2e": "To submit, call finish()."}


class SWEBench(CodingEnv[Sandbox]):
    """An issue of a real repository; the score is 1 if the submitted patch resolves it."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        protocol: str = "bash",
        data: str | os.PathLike[str] | None = None,
        image: str = "",
        python: str = "",
        predictions: str | os.PathLike[str] | None = None,
        model: str = "lmgym",
        **common: Any,
    ) -> None:
        """Choose the protocol, the instances and the images.

        Args:
            protocol: "bash" is mini-swe-agent's, "tools" takes JSON calls, "r2e" takes R2E-Gym's text calls.
            data: instances, as a file, a folder or a name for `datasets`; None: those of SWEBENCH_DATA.
            image: name of the images, with `{id}` for the instance; "": the official names.
            python: path of a Python of at least 3.10 in the images; "": conda's in official ones, else python3.
            predictions: a file that every submission is added to: JSON lines in a .jsonl file, and an object by
                instance, as mini-swe-agent writes it, in a .json file.
            model: model_name_or_path of the predictions.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(protocol=protocol, **common)
        self.data, self.image, self.python = data, image, python
        if predictions is not None:
            prediction_file.check(predictions)
        self.predictions, self.model = predictions, model
        self.prompt = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        self.instance: Instance | None = None

    def size(self) -> int:
        """Return the number of instances of the split."""
        return len(load(self.data, self.split))

    def title(self, index: int) -> str | None:
        """Return the id of an instance."""
        return load(self.data, self.split)[index].instance_id

    def index_of(self, title: str) -> int | None:
        """Return the index of the instance with this id."""
        ids = [instance.instance_id for instance in load(self.data, self.split)]
        return ids.index(title) if title in ids else None

    def begin(self, index: int) -> Reply:
        """Start a container of the instance's image."""
        self.close()
        self.instance = load(self.data, self.split)[index]
        parser(self.instance)  # an unknown one is refused before a container starts
        self.box = box(self.instance, image=self.image, python=self.python)
        self.sandbox = open_sandbox(self.box)
        start = insert_bug if self.instance.synthetic else one_commit
        self.base = start(self.sandbox, self.instance)
        texts = {
            "repo": self.instance.repo,
            "issue": self.instance.problem_statement.strip(),
            "protocol": instructions(self.protocol, folder=ROOT, seconds=LIMITS.seconds),
            "ending": ENDINGS[self.protocol],
        }
        return Reply(self.prompt.substitute(texts).strip())

    def perform(self, step: AgentStep) -> tuple[bool, str, str | None]:
        """Do a step in the sandbox."""
        return perform(self.begun(self.sandbox), step.kind, step.arguments)

    def submit(self, patch: str | None) -> Reply:
        """Judge a submission."""
        instance = self.begun(self.instance)
        patch = difference(self.begun(self.sandbox), self.base) if patch is None else patch
        if self.predictions is not None:
            prediction_file.append(self.predictions, instance.instance_id, patch, model=self.model)
        grade = judge(instance, patch, self.box)
        score = float(grade.resolved)
        return Reply(f"Submitted: {grade.reason or grade.status}.", done=True, score=score, reward=score)

    def fingerprint(self) -> str:
        """Return the instance's id."""
        return self.begun(self.instance).instance_id

    def oracle(self) -> Iterator[str]:
        """Apply the solution, and submit."""
        instance = self.begun(self.instance)
        options = " -R" if instance.synthetic else ""
        return self.solution(f"{instance.patch.rstrip()}\n", options=options, save=CHANGES)
