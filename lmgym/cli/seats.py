"""The policies of a run, made of its settings alone: whoever plays it again is asked in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmgym.cli.policies import answer_of, check_tools, kind_of, load_here

if TYPE_CHECKING:
    from lmgym.evaluation.settings import Settings
    from lmgym.policy.base import Policy
    from lmgym.policy.endpoints.openai import Asking
    from lmgym.policy.endpoints.remote import RemotePolicy
    from lmgym.rollout.episode_state import SeatConfig

Reach = Callable[[str, "Asking"], "RemotePolicy"]  # how an endpoint or a program is reached, and asked


@dataclass(kw_only=True)
class Seats:
    """The policies of a run, which are closed when it ends."""

    agent: Policy
    seats: dict[str, Policy]
    remote: list[RemotePolicy]

    @property
    def watched(self) -> RemotePolicy | None:
        """Whose calls the table shows."""
        return self.remote[0] if self.remote else None

    def parts(self) -> dict[str, SeatConfig]:
        """The other seats' policies, as an engine takes them."""
        from lmgym.rollout.episode_state import SeatConfig

        return {seat: SeatConfig(policy=policy, trained=False) for seat, policy in self.seats.items()}

    def close(self) -> None:
        """Let connections and programs go."""
        for policy in self.remote:
            policy.close()


def seats_of(model: str, chosen: Settings, reach: Reach, local: dict[str, Policy], *, key: str | None = None) -> Seats:
    """Load the policies; local ones are kept in `local` for the next task, `key` names the variable of a key."""
    from lmgym.policy.endpoints.openai import Asking

    remote: list[RemotePolicy] = []
    limit = chosen.max_tokens or answer_of(model)

    def loaded(name: str) -> Policy:
        if kind_of(name) == "remote":
            asking = Asking(temperature=chosen.temperature, max_tokens=limit, more=chosen.request, key=key)
            policy = reach(name, asking)
            remote.append(policy)
            return policy
        if name not in local:
            heat = 1.0 if chosen.temperature is None else chosen.temperature
            local[name] = load_here(name, heat, chosen.seed, max_tokens=limit)
        return local[name]

    try:
        agent = loaded(model)
        if chosen.tools == "template":
            check_tools(agent)  # type: ignore[arg-type]  # of a local kind
        if kind_of(model) != "scripted":
            from lmgym.policy.tools import Plain

            agent = Plain(agent, tools=chosen.tools)
        return Seats(agent=agent, seats={seat: loaded(name) for seat, name in chosen.seats.items()}, remote=remote)
    except BaseException:
        for policy in remote:
            policy.close()
        raise
