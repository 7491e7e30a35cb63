"""Tree search over answers: a planner that plays a group as one tree, and writes its traces.

An episode is a simulation. It forks from a node chosen by UCT, the policy plays it to its end, and its success counts
for all nodes on its path.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Group, Node, Planner, Replace
from lmgym.train.interfaces import FilterResult
from lmgym.types import Job, Trajectory

TRACE = "trace"  # tag of a job with the actions to play
DOUBT = "That is not it. "  # begins the thought after a wrong branch
THOUGHT = "<think>"


@dataclass
class SearchNode:
    """The history of actions that leads to a state."""

    children: dict[str, SearchNode] = field(default_factory=dict)  # by action
    visits: int = 0
    successes: int = 0
    through: Trajectory | None = None  # an episode that went on from here; None: no episode did
    valid: bool = True  # the environment took the action that led here

    def value(self) -> float:
        """Return the share of visits that ended in success."""
        return self.successes / self.visits


@dataclass(frozen=True)
class SearchTraces(Planner):
    """Plays a group as a tree search, then one episode that writes it down as a trace (Sarch et al. 2025, ViGoRL).

    A simulation descends from the root to the child with the highest mean success + explore sqrt(ln N / n), as long as
    a node has `width` children, and samples another answer there. With `expert` the group's first try is the
    demonstrator's. The trace is the shortest successful path, before whose actions up to `wrong` answers are played
    that led nowhere from the same node; the next thought says so. Groups without success have no trace.
    """

    simulations: int  # episodes of a group
    width: int = 3  # children of a node before the search descends
    explore: float = 1.0
    wrong: int = 1  # answers of wrong branches in a trace
    turns: int = 6  # of a trace, at most
    expert: bool = True
    wants = frozenset({"demonstrator"})

    def before_step(self, node: Node) -> Replace | None:
        """Return the next action of a trace, or the demonstrator's in a group's first try."""
        trace, number = node.job.tags.get(TRACE), len(node.turns)
        if trace is not None:
            return Replace(trace[number]) if number < len(trace) else None
        demonstrated = self.expert and node.job.parent is None and node.job.attempt == 0
        return Replace(str(node.hints["demonstrator"])) if demonstrated else None

    def after_group(self, group: Group) -> Iterable[Job]:
        """Return the next simulation; once all are played, the trace."""
        if any(TRACE in job.tags for job in group.jobs) or not group.trajectories:
            return []
        root = tree(group.trajectories)
        if len(group.jobs) < self.simulations:
            return [self.simulation(group, root)]
        actions = self.trace(root)
        return [replace(job, tags={**job.tags, TRACE: actions}) for job in group.tries(1)] if actions else []

    def simulation(self, group: Group, root: SearchNode) -> Job:
        """Return the job that samples an answer at the node that UCT chooses."""
        node, depth = root, 0
        while len(node.children) >= self.width:
            parent = node
            open_children = [child for child in parent.children.values() if child.through is not None]
            if not open_children:
                break
            spread = math.log(parent.visits)
            node = max(open_children, key=lambda c: c.value() + self.explore * math.sqrt(spread / c.visits))
            depth += 1
        if depth == 0 or node.through is None:
            return group.tries(1)[0]
        return fork(node.through, depth, number=len(group.jobs), trusted=True)

    def trace(self, root: SearchNode) -> list[str]:
        """Return the actions of the trace; none without a success."""
        path = shortest_success(root)
        if path is None:
            return []
        actions, node, left = list[str](), root, min(self.wrong, self.turns - len(path))
        for action in path:
            tried = [(c.value(), other) for other, c in node.children.items() if c.through and c.valid]
            failed = sorted((value, n, other) for n, (value, other) in enumerate(tried) if other != action)
            branches = [other for value, _, other in failed if value < node.children[action].value()][: max(0, left)]
            left -= len(branches)
            actions += [*branches, action.replace(THOUGHT, THOUGHT + DOUBT, 1) if branches else action]
            node = node.children[action]
        return actions


def tree(trajectories: Sequence[Trajectory]) -> SearchNode:
    """Return the root of the tree of a group's episodes, whose nodes are their histories of actions."""
    root = SearchNode()
    for trajectory in trajectories:
        node = root
        node.visits, node.successes = node.visits + 1, node.successes + trajectory.success
        for turn in trajectory.turns:
            node.through = node.through or trajectory
            node = node.children.setdefault(turn.action or "", SearchNode(valid=turn.info.get("valid", True)))
            node.visits, node.successes = node.visits + 1, node.successes + trajectory.success
    return root


def shortest_success(root: SearchNode) -> list[str] | None:
    """Return the actions of the shortest path to a success, the first of several; None if there is none."""
    level: list[tuple[list[str], SearchNode]] = [([], root)]
    while level:
        for path, node in level:
            if path and not node.children and node.successes:
                return path
        level = [([*path, action], child) for path, node in level for action, child in node.children.items()]
    return None


def successful_traces(trajectories: Sequence[Trajectory]) -> FilterResult:
    """Drop all episodes but traces that end in success."""
    return FilterResult(drop=frozenset(t.id for t in trajectories if TRACE not in t.tags or not t.success))
