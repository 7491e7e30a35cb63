"""What makes a verified entry a reproduced one: its policy, here, says or does it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import SubmissionError
from lmgym.types import FIRST_SEAT

if TYPE_CHECKING:
    from lmgym.board.entry import Entry
    from lmgym.board.figures import Precision
    from lmgym.board.verdict import Verdict
    from lmgym.evaluation.policies import Policies
    from lmgym.evaluation.settings import Settings


@dataclass(frozen=True)
class Again:
    """A policy to hold an entry against: its recorded ids are scored again, or it plays fresh instances."""

    model: str  # "": nothing is done
    tolerance: float | None = None  # of a log-prob, in nats
    secret: Path | None = None  # a hidden seed, whose digest was published
    instances: int = 100  # fresh ones
    seats: Mapping[str, str] = field(default_factory=dict)  # where the models of the entry's other seats are here

    @classmethod
    def of(cls, model: str, *, seat: list[str] | None, **given: Any) -> Again:
        """From the words of a command. Raises PolicyError where a key is among them."""
        from lmgym.cli.options import pairs
        from lmgym.evaluation.config import check_keys

        seats = pairs(seat, "--seat")
        check_keys([model, *seats.values()], [])
        return cls(model, seats=seats, **given)

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
        from lmgym.evaluation.policies import kind_of
        from lmgym.evaluation.protocol import protocol
        from lmgym.evaluation.settings import context_rule
        from lmgym.policy.local.audit import auditor

        if kind_of(self.model) != "local":
            raise SubmissionError(f"{self.model} has no weights here to score ids under: --model takes tiny, hf:, run:")
        settings = found.settings
        if settings.get("tools") == "native":
            raise SubmissionError("the entry's tools are native, which is for endpoints: no local policy was told so")
        policy = self._policy(found)
        heat, top_p = float(settings.get("temperature", 1.0)), float(settings.get("top_p", 1.0))
        tools, top_k = str(settings.get("tools", "none")), int(settings.get("top_k", 0))
        rules = protocol(found.task)
        return audit.audit(
            found,
            [episode for _, episode in checked_episodes(found, rules, path)],
            auditor(policy, temperature=heat, top_p=top_p, top_k=top_k, seed=0, tools=tools),
            rules,
            context=context_rule(str(settings.get("context", "full"))),
            precision=_precision(policy, self.tolerance),
        )

    def _fresh(self, found: Entry, verdict: Verdict, log: Path) -> dict[str, Any]:
        """What playing fresh instances finds, with the entry's own settings."""
        from dataclasses import replace

        from lmgym.board import fresh, history, run
        from lmgym.evaluation.protocol import protocol
        from lmgym.evaluation.settings import context_rule
        from lmgym.rollout.engine import Engine

        assert self.secret is not None
        secret = self.secret.read_text(encoding="utf-8").strip()
        events, told = history.read(log), found.declared.trained_on
        drawn = fresh.jobs(protocol(found.task), secret, self.instances, events, trained_on=told)
        fresh.check_count(verdict, self.instances)  # before anything is played
        chosen = self._settings(found)
        jobs = [replace(job, prompt=chosen.prompt) for job in drawn]
        pictures: dict[str, bytes] = {}
        playing = self._policies(found, chosen, pictures)
        try:
            engine = Engine(context=context_rule(chosen.context), seats=playing.seat_configs(), pictures=pictures)
            played = [each for each in engine.run(playing.agent, jobs) if each.seat == FIRST_SEAT]
        finally:
            playing.close()
        seats = {seat: run.public_name(model) for seat, model in chosen.seats.items()}
        return fresh.compare(verdict, played, policy=run.public_name(self.model), **({"seats": seats} if seats else {}))

    def _settings(self, found: Entry) -> Settings:
        """The entry's, with the models that play its other seats as they are to be reached from here."""
        from dataclasses import fields

        from lmgym.board import run
        from lmgym.evaluation.settings import Settings

        stated = {name: words for name, words in found.settings.get("seats", {}).items() if name in found.seats}
        if unknown := sorted({*found.seats, *self.seats} - {FIRST_SEAT, *stated}):
            raise SubmissionError(f"the entry does not say who plays the seat {unknown[0]!r}")
        seats = {**stated, **self.seats}
        for seat, model in seats.items():
            if run.public_name(model) != run.public_name(stated[seat]):
                raise SubmissionError(
                    f"the entry's {seat} is {run.public_name(stated[seat])}, that of --seat is {run.public_name(model)}"
                )
            if ": " in model:  # a name without its place
                raise SubmissionError(f"the entry's {seat} is {model}: say where it is, by --seat {seat}=MODEL")
        truncated = {name: found.settings[name] for name in ("top_p", "top_k") if name in found.settings}
        kept = {field.name for field in fields(Settings)} & found.settings.keys()
        known = {name: found.settings[name] for name in kept}
        more = {"seats": seats, "request": {**truncated, **found.settings.get("request", {})}}
        return Settings(task=found.task, split=found.split, instances=(), **{**known, **more})

    def _policies(self, found: Entry, chosen: Settings, pictures: dict[str, bytes]) -> Policies:
        """The policies that are to play. Raises SubmissionError where the first is not the entry's."""
        from lmgym.board.run import check_policy
        from lmgym.evaluation.policies import build_policies, kind_of
        from lmgym.policy.load import load_remote
        from lmgym.train.load import load_policy

        local: dict[str, Any] = {}
        if kind_of(self.model) == "local":
            local[self.model] = self._policy(found)
        else:
            check_policy(found.policy, self.model)
        return build_policies(
            self.model,
            chosen,
            lambda name, request: load_remote(name, request=request, pictures=pictures),
            load_policy,
            local,
        )

    def _policy(self, found: Entry) -> Any:
        """The local policy, as the entry was sampled. Raises SubmissionError for other weights than the entry's."""
        settings = found.settings
        if found.policy.weights is None:
            raise SubmissionError(f"the entry's weights are not stated: nobody can say that {self.model} has them")
        from lmgym.board.run import check_unguided
        from lmgym.policy.local.audit import weights_digest
        from lmgym.train.load import load_policy

        heat, seed = float(settings.get("temperature", 1.0)), int(settings.get("seed", 0))
        given = {name: settings[name] for name in ("max_tokens", "top_p", "top_k") if name in settings}
        policy: Any = load_policy(self.model, heat, seed, **given)
        digest = weights_digest(check_unguided(policy))
        if found.policy.weights != digest:
            stated = found.policy.weights[:16]
            raise SubmissionError(f"the entry's weights are {stated}, those of {self.model} are {digest[:16]}")
        return policy


def _precision(policy: Any, tolerance: float | None) -> Precision:
    """What is to be expected of a policy's weights; `tolerance` takes the place of what log-probs may differ by."""
    from dataclasses import replace

    from lmgym.board.figures import FULL, HALF, Precision
    from lmgym.policy.local.audit import in_fp32

    if in_fp32(policy):
        return FULL if tolerance is None else Precision(mean=tolerance, most=tolerance, tie=tolerance)
    return HALF if tolerance is None else replace(HALF, mean=tolerance)
