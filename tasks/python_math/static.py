"""Problems of data files: JSON lines, Parquet, CSV or a saved data set, loaded by `datasets`, judged by math-verify."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from lmgym.env.answers import boxed
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, MissingExtra
from lmgym.tasks.python_math import VARIANTS
from lmgym.tasks.python_math.env import PythonMath
from lmgym.tasks.python_math.problems import MathProblem
from lmgym.tasks.python_math.verifier import Verifier

VARIABLE = "PYTHON_MATH_DATA"
QUESTIONS = ("question", "problem", "prompt")  # names of columns, the first that is there
ANSWERS = ("answer", "ground_truth", "solution", "reward_model")
KINDS = {".jsonl": "json", ".json": "json", ".parquet": "parquet", ".csv": "csv"}


class PythonMathFiles(PythonMath):
    """A problem of `data`: a file for the split asked for, or a folder with `train` and `test` files."""

    SPEC: ClassVar[TaskSpec] = VARIANTS[0]

    def __init__(self, *, data: str | os.PathLike[str] | None = None, **options: Any) -> None:
        """Load the problems; `data` defaults to $PYTHON_MATH_DATA, and without either there are none."""
        super().__init__(**options)
        where = data or os.environ.get(VARIABLE)
        self.rows = rows(str(where), self.split) if where else ()
        self.verifier = Verifier()

    def size(self) -> int:
        """Return the number of problems."""
        return len(self.rows)

    def draw(self, index: int) -> MathProblem:
        """Return the problem of a row."""
        return self.rows[index]

    def right(self, answer: str) -> bool:
        """Return True if math-verify, or the exact checker, takes the answer for the row's."""
        return super().right(answer) or self.verifier.same(answer, self.problem.answer)

    def close(self) -> None:
        """Remove the sandboxes."""
        super().close()
        self.verifier.close()


@lru_cache(maxsize=4)
def rows(where: str, split: str) -> tuple[MathProblem, ...]:
    """Return the problems of a split, () if the folder has no file of it. Raises InstanceError for unreadable data."""
    try:
        import datasets
    except ModuleNotFoundError as error:
        raise MissingExtra(f"files of problems need: pip install 'lmgym[math]' ({error})") from error
    path = Path(where)
    try:
        if (path / "dataset_dict.json").is_file():
            loaded = datasets.load_from_disk(where)
            table: Any = loaded.get(split, ())
        elif (path / "dataset_info.json").is_file():
            table = datasets.load_from_disk(where)
        else:
            names = [path] if path.is_file() else [each for each in sorted(path.glob(f"*{split}*")) if each.is_file()]
            names = [each for each in names if each.suffix in KINDS]
            if not names and not path.exists():
                raise InstanceError(f"no data at {where}: give a .jsonl, .json, .parquet or .csv file, or a folder")
            kinds = {KINDS[each.suffix] for each in names}
            if len(kinds) > 1:
                raise InstanceError(f"the files of {split} in {where} are of several kinds: {', '.join(sorted(kinds))}")
            files = [str(each) for each in names]
            table = datasets.load_dataset(kinds.pop(), data_files=files, split="train", streaming=True) if files else ()
        return tuple(_problem(row, number, where) for number, row in enumerate(table))
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        if isinstance(error, InstanceError):
            raise
        raise InstanceError(f"{where} cannot be read: {' '.join(str(error).split())[:200]}") from error


def _problem(row: Mapping[str, Any], number: int, where: str) -> MathProblem:
    r"""Return a row's problem; the answer of a solution is behind "####" (GSM8K) or in its last \boxed{} (MATH)."""
    question, answer = _first(row, QUESTIONS), _first(row, ANSWERS)
    if isinstance(question, list):  # messages, as verl writes them
        question = question[-1]["content"] if question and "content" in question[-1] else None
    if isinstance(answer, Mapping):
        answer = answer.get("ground_truth")
    if not isinstance(question, str) or not isinstance(answer, str | int | float):
        columns = ", ".join(row)
        raise InstanceError(
            f"row {number} of {where} has no question ({', '.join(QUESTIONS)}) or no answer ({', '.join(ANSWERS)}) "
            f"among {columns}"
        )
    text = str(answer)
    final = text.rpartition("####")[2] if "####" in text else boxed(text) or text
    return MathProblem(question, final.strip(), "")


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)
