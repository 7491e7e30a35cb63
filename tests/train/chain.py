"""chain(3, 5): three right choices of four, in order, within five turns; a wrong one throws back to the start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import TEMPLATE
from lmgym.train.services import Services
from lmgym.train.state import InstancePool, RunConfig
from tests.train.toys import toy_model

SPEC = TaskSpec(
    id="test/Chain-v0",
    entry_point=f"{__name__}:Chain",
    summary="Choose a, c, b.",
    max_turns=5,
    splits={"train": 1000, "test": 1000},
    score="1 when chosen",
    references={"null": 0.0, "oracle": 1.0},
)
RIGHT = "acb"
WORDS = ["<|pad|>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>", "?", *"abcd", *"0123"]


class Chain(TextEnv):
    """Shows how far one is."""

    SPEC = SPEC

    def begin(self, index: int) -> Reply:
        self.place = 0
        return Reply("0")

    def act(self, action: str) -> Reply:
        self.place = self.place + 1 if action == RIGHT[self.place] else 0
        done = self.place == len(RIGHT)
        return Reply(
            str(self.place), reward=float(done), done=done, score=1.0 if done else None, valid=action in WORDS[6:10]
        )

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield RIGHT[self.place]

    def admissible(self) -> list[str]:
        return list("abcd")


def chain_policy(seed: int = 0) -> LocalPolicy:
    """A policy of some 3000 weights whose every word is a token."""
    backend = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        pad_token=WORDS[0],
        eos_token=WORDS[1],
        unk_token="?",
        additional_special_tokens=WORDS[2:5],
    )
    tokenizer.chat_template = TEMPLATE
    model = toy_model(seed, vocab=len(WORDS))
    return LocalPolicy(model, tokenizer, name="toy", sampling=Sampling(max_tokens=2))


@contextmanager
def services_of(policy: LocalPolicy, folder: Any, *, context: Any = None) -> Iterator[Services]:
    """Yield the services of a run of a policy on the chain."""
    pool = InstancePool(task=SPEC.id, size=1000)
    with ExitStack() as opened:
        config = RunConfig(quiet=True)
        yield Services(policy, pool, folder=folder, config=config, context=context, temperature=1.0, opened=opened)
