"""The public function for batched rollouts."""

import lmgym
from lmgym.policy.load import load_policy
from lmgym.rollout import Engine, play
from lmgym.rollout.context import Window


def test_a_batch_is_returned_by_instance_and_attempt_with_the_engines_settings():
    trajectories = play(load_policy("oracle"), "wordle", split="test", episodes=3, attempts=2, first=5)
    assert [(each.index, each.attempt, each.group) for each in trajectories] == [
        (index, attempt, str(index)) for index in (5, 6, 7) for attempt in (0, 1)
    ]
    assert all(each.success and each.split == "test" for each in trajectories)
    engine = Engine(context=Window(1), concurrency=2)
    random = load_policy("random")
    trajectories = lmgym.rollout.play(random, "guess_number", episodes=4, options={"highest": 10}, engine=engine)
    assert engine.stats.played == len(trajectories) == 4
    assert all("from 1 to 10" in each.turns[0].observation.text for each in trajectories)
