"""Wordle for the tests with other libraries: its hidden words, and a backend that breaks."""

from lmgym.env.registry import build
from lmgym.errors import BackendError
from lmgym.evaluation import runner
from lmgym.tasks.wordle.env import Wordle


def jobs(count):
    """Return the episodes of an evaluation of `count` instances."""
    return runner.episodes("wordle", split="test", size=93, count=count, options={})


def secret(index):
    """Return the hidden word of a test instance."""
    return build("wordle", split="test").reset(options={"index": index})[1]["answer"]


def secrets(count):
    """Return the hidden words of the instances that an evaluation of `count` plays."""
    return [secret(job.index) for job in jobs(count)]


def break_backend(word):
    """Make the backend of the instance with this hidden word break at the first action."""
    act = Wordle.act

    def breaks(self, action):
        if self.secret == word:
            raise BackendError("the engine is gone")
        return act(self, action)

    Wordle.act = breaks
