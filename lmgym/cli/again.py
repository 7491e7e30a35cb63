"""What makes a verified entry a reproduced one: its policy, here, says or does it again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.board.entry import Entry
    from lmgym.board.verdict import Verdict


@dataclass(frozen=True)
class Again:
    """A policy to hold an entry against: its recorded ids are scored again, or it plays fresh instances."""

    model: str  # "": nothing is done
    tolerance: float | None = None  # of a log-prob, in nats
    secret: Path | None = None  # a hidden seed, whose digest was published
    instances: int = 100  # fresh ones

    def judge(self, path: Path, found: Entry, verdict: Verdict, log: Path) -> Verdict:
        """The verdict after that. Raises SubmissionError where the policy cannot be the entry's."""
        import msgspec

        if not self.model:
            return verdict
        if self.secret is not None:
            verdict = msgspec.structs.replace(verdict, fresh=self._fresh(found, verdict, log))
        else:
            verdict = msgspec.structs.replace(verdict, audit=self._audit(path, found))
        mark = "reproduced" if verdict.mark == "verified" else verdict.mark
        return msgspec.structs.replace(verdict, mark=mark)

    def _audit(self, path: Path, found: Entry) -> dict[str, Any]:
        """What scoring the recorded ids again finds."""
        from lmgym.board import audit
        from lmgym.board.check import checked_episodes
        from lmgym.cli.policies import kind_of
        from lmgym.evaluation.protocol import protocol
        from lmgym.evaluation.settings import context_rule
        from lmgym.policy.audit import auditor

        if kind_of(self.model) != "local":
            raise SubmissionError(f"{self.model} has no weights here to score ids under: --model takes tiny, hf:, run:")
        settings = found.settings
        policy = self._policy(found)
        heat, top_p = float(settings.get("temperature", 1.0)), float(settings.get("top_p", 1.0))
        rules = protocol(found.task)
        return audit.audit(
            found,
            [episode for _, episode in checked_episodes(found, rules, path)],
            auditor(policy, temperature=heat, top_p=top_p, top_k=int(settings.get("top_k", 0)), seed=0),
            rules,
            context=context_rule(str(settings.get("context", "full"))),
            tolerance=self.tolerance if self.tolerance is not None else _tolerance(policy),
        )

    def _fresh(self, found: Entry, verdict: Verdict, log: Path) -> dict[str, Any]:
        """What playing fresh instances finds."""
        from dataclasses import replace

        from lmgym.board import fresh, history
        from lmgym.evaluation.protocol import protocol
        from lmgym.evaluation.settings import context_rule
        from lmgym.rollout.engine import Engine

        assert self.secret is not None
        settings = found.settings
        secret = self.secret.read_text(encoding="utf-8").strip()
        events, told = history.read(log), found.declared.trained_on
        drawn = fresh.jobs(protocol(found.task), secret, self.instances, events, trained_on=told)
        fresh.check_count(verdict, self.instances)  # before anything is played
        jobs = [replace(job, prompt=settings.get("prompt")) for job in drawn]
        engine = Engine(context=context_rule(str(settings.get("context", "full"))))
        return fresh.compare(verdict, list(engine.run(self._policy(found), jobs)))

    def _policy(self, found: Entry) -> Any:
        """The policy, as the entry was sampled. Raises SubmissionError for other weights than the entry's."""
        from lmgym.cli.policies import kind_of, load_here, unguided

        settings = found.settings
        heat, seed = float(settings.get("temperature", 1.0)), int(settings.get("seed", 0))
        limit = settings.get("max_tokens")
        policy: Any = load_here(self.model, heat, seed, **({} if limit is None else {"max_tokens": int(limit)}))
        if kind_of(self.model) == "local":
            from lmgym.policy.audit import weights_digest

            digest = weights_digest(unguided(policy))
            if found.policy.weights != digest:
                stated = (found.policy.weights or "not stated")[:16]
                raise SubmissionError(f"the entry's weights are {stated}, those of {self.model} are {digest[:16]}")
        return policy


def _tolerance(policy: Any) -> float:
    from lmgym.board.audit import HALF, TOLERANCE

    return TOLERANCE if str(policy.dtype) == "torch.float32" else HALF
