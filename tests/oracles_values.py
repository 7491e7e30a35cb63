"""Independent oracles of what values and pairs are: plain loops and numpy, nothing of lmgym."""

from __future__ import annotations

import itertools
import math

import numpy as np

from tests.oracles import CONTEXTS, final_reward, probability

WORDS = ["aa", "ab", "ba", "bb"]


def word_probability(seen, word, log_odds):
    """Return the probability of a word of two tokens after an observation ("" in turn 1) in the two-turn MDP."""
    return probability(seen, word[0], log_odds) * probability(seen + word[0], word[1], log_odds)


def chance_of_x(word):
    return 0.8 if word == "ab" else 0.3


def two_turn_values(log_odds, gamma):
    """Q by (observation, word) and V by observation of the policy; the first observation is ""."""
    q, v = {}, {}
    for seen in "xy":
        for word in WORDS:
            q[seen, word] = final_reward(seen, word)
        v[seen] = sum(word_probability(seen, word, log_odds) * q[seen, word] for word in WORDS)
    for word in WORDS:
        x = chance_of_x(word)
        q["", word] = -0.1 + gamma * (x * v["x"] + (1 - x) * v["y"])
    v[""] = sum(word_probability("", word, log_odds) * q["", word] for word in WORDS)
    return q, v


def visits(log_odds):
    """Return how often an observation is met in an episode."""
    x = sum(word_probability("", word, log_odds) * chance_of_x(word) for word in WORDS)
    return {"": 1.0, "x": x, "y": 1 - x}


def score_of(seen, word, log_odds):
    """Gradient of the log-probability of a word."""
    gradient = np.zeros(len(CONTEXTS))
    for context, token in ((seen, word[0]), (seen + word[0], word[1])):
        p = probability(context, "a", log_odds)
        gradient[CONTEXTS.index(context)] += (1 - p) if token == "a" else -p
    return gradient


def archer_direction(log_odds, gamma):
    """The actor's expected gradient with an exact critic, summed over the observations met."""
    q, v = two_turn_values(log_odds, gamma)
    total = np.zeros(len(CONTEXTS))
    for seen, often in visits(log_odds).items():
        for word in WORDS:
            advantage = q[seen, word] - v[seen]
            total += often * word_probability(seen, word, log_odds) * advantage * score_of(seen, word, log_odds)
    return total


def soft_improvement(pi, q, eta):
    """pi exp(eta q), normalised: where REFUEL's regression ends."""
    weights = [p * math.exp(eta * value) for p, value in zip(pi, q, strict=True)]
    return [w / sum(weights) for w in weights]


def refuel_loss(pi, old, q, eta):
    """Expected squared error over pairs of independent actions of the old policy."""
    total = 0.0
    for i, j in itertools.product(range(len(pi)), repeat=2):
        moved = math.log(pi[i] / old[i]) - math.log(pi[j] / old[j])
        total += old[i] * old[j] * (moved - eta * (q[i] - q[j])) ** 2
    return total


def chained_targets(reward, value, gamma, boot=0.0):
    """Reward plus the discounted value of the next state of each token; `boot` is that after the last."""
    return [r + gamma * after for r, after in zip(reward, [*value[1:], boot], strict=True)]


def returns_to_go(reward, gamma, boot=0.0):
    found = []
    for r in reversed(reward):
        boot = r + gamma * boot
        found.append(boot)
    return found[::-1]


def expectile_of(values, chances, tau):
    """Return the point where the weighted deviations above and below balance, by bisection."""
    low, high = min(values), max(values)
    for _ in range(200):
        middle = (low + high) / 2
        pull = sum(
            p * (tau if value > middle else 1 - tau) * (value - middle)
            for value, p in zip(values, chances, strict=True)
        )
        low, high = (middle, high) if pull > 0 else (low, middle)
    return (low + high) / 2


# A maze where no episode is the best way: from the start one episode takes the road to the crossing and then the wrong
# turn, another the short way home; a third begins at the crossing and takes the right turn.
START, CROSSING, STATES, ACTIONS = 0, 1, 2, 2
MAZE = [  # episodes of (state, action, reward)
    [(START, 0, 0.0), (CROSSING, 1, 0.0)],
    [(START, 1, 0.3)],
    [(CROSSING, 0, 1.0)],
]


def maze_behaviour():
    """Return the outcome of each action in the data, by (state, action): its mean reward and next states."""
    found = {}
    for episode in MAZE:
        for number, (state, action, reward) in enumerate(episode):
            after = episode[number + 1][0] if number + 1 < len(episode) else None
            found.setdefault((state, action), []).append((reward, after))
    return found


def maze_sarsa(gamma):
    """Q of the behaviour by dynamic programming."""
    found, often = maze_behaviour(), {}
    for state, action in found:
        often.setdefault(state, []).extend([action] * len(found[state, action]))
    q = dict.fromkeys(found, 0.0)
    for _ in range(50):
        v = {state: sum(q[state, a] for a in actions) / len(actions) for state, actions in often.items()}
        q = {
            key: sum(r + gamma * (0.0 if after is None else v[after]) for r, after in ways) / len(ways)
            for key, ways in found.items()
        }
    return q


def maze_best(gamma):
    """Q of the best play within the data, by dynamic programming."""
    found = maze_behaviour()
    q = dict.fromkeys(found, 0.0)
    for _ in range(50):
        v = {s: max(q[state, a] for state, a in q if state == s) for s, _ in q}
        q = {
            key: sum(r + gamma * (0.0 if after is None else v[after]) for r, after in ways) / len(ways)
            for key, ways in found.items()
        }
    return q
