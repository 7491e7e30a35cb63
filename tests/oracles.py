"""Independent oracles: plain loops and numpy, nothing of lmgym, so that a shared mistake cannot hide."""

from __future__ import annotations

import itertools
import math

import numpy as np


def group_advantages(returns, *, std, ddof=1, epsilon=0.0):
    mean = sum(returns) / len(returns)
    if not std:
        return [r - mean for r in returns]
    deviation = math.sqrt(sum((r - mean) ** 2 for r in returns) / (len(returns) - ddof))
    return [0.0 if deviation == 0 else (r - mean) / (deviation + epsilon) for r in returns]


def clip_term(rho, advantage, low, high, dual=None):
    bounded = min(max(rho, 1 - low), 1 + high)
    term = min(rho * advantage, bounded * advantage)
    if dual is not None and advantage < 0:
        term = max(term, dual * advantage)
    return term


def aggregate(sequences, kind, longest=1):
    """Loss of a step from lists of token losses, one list a sequence."""
    everything = [x for sequence in sequences for x in sequence]
    if kind == "token_mean":
        return sum(everything) / len(everything)
    if kind == "seq_mean":
        return sum(sum(s) / len(s) for s in sequences) / len(sequences)
    if kind == "seq_sum":
        return sum(everything) / len(sequences)
    return sum(everything) / (len(sequences) * longest)


def kl_figures(pi, ref):
    """Expected value of each estimator under pi, and expected gradient w.r.t. the logits of pi when used as a loss."""
    values, gradients = {}, {}
    derivative = {"k1": lambda d: 1.0, "k2": lambda d: d, "k3": lambda d: 1.0 - math.exp(-d)}
    value = {"k1": lambda d: d, "k2": lambda d: d * d / 2, "k3": lambda d: math.exp(-d) - 1 + d}
    for kind in ("k1", "k2", "k3"):
        total, gradient = 0.0, [0.0] * len(pi)
        for action, p in enumerate(pi):
            d = math.log(p / ref[action])
            total += p * value[kind](d)
            for j in range(len(pi)):
                gradient[j] += p * derivative[kind](d) * ((1.0 if j == action else 0.0) - pi[j])
        values[kind], gradients[kind] = total, gradient
    return values, gradients


# The two-turn token MDP ------------------------------------------------------------------------------------------

CONTEXTS = ["", "a", "b", "x", "xa", "xb", "y", "ya", "yb"]
LOG_ODDS = [0.3, -0.2, 0.5, 0.4, 0.1, -0.3, -0.6, 0.2, 0.7]


def probability(context, token, log_odds):
    p = 1 / (1 + math.exp(-log_odds[CONTEXTS.index(context)]))
    return p if token == "a" else 1 - p


def steps(first, seen, second):
    """The four choices of an episode as (context, token)."""
    return [("", first[0]), (first[0], first[1]), (seen, second[0]), (seen + second[0], second[1])]


def final_reward(seen, second):
    return 1.0 if (seen, second) in (("x", "aa"), ("y", "bb")) else 0.0


def episodes(log_odds):
    """Yield (first, seen, second, probability, return) of all 32 episodes."""
    words = ["".join(w) for w in itertools.product("ab", repeat=2)]
    for first, seen, second in itertools.product(words, "xy", words):
        p_x = 0.8 if first == "ab" else 0.3
        chance = p_x if seen == "x" else 1 - p_x
        for context, token in steps(first, seen, second):
            chance *= probability(context, token, log_odds)
        yield first, seen, second, chance, -0.1 + final_reward(seen, second)


def objective(log_odds):
    return sum(chance * value for *_, chance, value in episodes(log_odds))


def exact_gradient(log_odds):
    """Gradient of the objective by the score function, enumerated."""
    gradient = np.zeros(len(CONTEXTS))
    for first, seen, second, chance, value in episodes(log_odds):
        for context, token in steps(first, seen, second):
            p = probability(context, "a", log_odds)
            gradient[CONTEXTS.index(context)] += chance * value * ((1 - p) if token == "a" else -p)
    return gradient
