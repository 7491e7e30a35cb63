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


def state_values(log_odds):
    """Return the return to go of each context, by enumeration: -0.1 after turn 1, the rest at the end."""
    earned, chances = dict.fromkeys(CONTEXTS, 0.0), dict.fromkeys(CONTEXTS, 0.0)
    for first, seen, second, chance, value in episodes(log_odds):
        for number, (context, _) in enumerate(steps(first, seen, second)):
            earned[context] += chance * (value if number < 2 else value + 0.1)
            chances[context] += chance
    return {context: earned[context] / chances[context] for context in CONTEXTS}


def tabular_gradient(played, log_odds):
    """Gradient of the mean return by context, of (choices as (context, token a or b), chance outside, return)."""
    gradient = dict.fromkeys(log_odds, 0.0)
    objective = 0.0
    for choices, chance, value in played:
        for context, token in choices:
            p = 1 / (1 + math.exp(-log_odds[context]))
            chance *= p if token == "a" else 1 - p
        objective += chance * value
        for context, token in choices:
            p = 1 / (1 + math.exp(-log_odds[context]))
            gradient[context] += chance * value * ((1 - p) if token == "a" else -p)
    return objective, gradient


def gae(reward, value, *, gamma, lam, boot=0.0):
    """By the definition: the sum of all later errors, each discounted by (gamma lam) a step."""
    following = [*value[1:], boot]
    errors = [r + gamma * after - v for r, v, after in zip(reward, value, following, strict=True)]
    return [sum((gamma * lam) ** (k - t) * errors[k] for k in range(t, len(errors))) for t in range(len(errors))]


def bilevel_gae(reward, value, turns, *, gamma, turn_gamma, lam, boot=0.0):
    """Turns by their last tokens first; what a turn is worth is the reward of its last token within the turn."""
    last = [max(t for t in range(len(turns)) if turns[t] == turn) for turn in sorted(set(turns))]
    high = gae([reward[t] for t in last], [value[t] for t in last], gamma=turn_gamma, lam=lam, boot=boot)
    found = []
    for turn, end, above in zip(sorted(set(turns)), last, high, strict=True):
        own = [t for t in range(len(turns)) if turns[t] == turn]
        paid = [above + value[t] if t == end else reward[t] for t in own]
        found += gae(paid, [value[t] for t in own], gamma=gamma, lam=lam)
    return found


def whitened(values):
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return [(v - mean) / (deviation + 1e-8) for v in values]


def leave_one_out(returns):
    total = sum(returns)
    return [r - (total - r) / (len(returns) - 1) for r in returns]


def importance(episodes, mode, least, most):
    """Factors of the tokens of episodes, lists of probability ratios trainer to sampler."""
    found = []
    for ratios in episodes:
        product = math.prod(ratios)
        geometric = product ** (1 / len(ratios)) if ratios else 1.0
        match mode:
            case "token_cap":
                found.append([min(w, most) for w in ratios])
            case "token_mask":
                found.append([w if least < w < most else 0.0 for w in ratios])
            case "sequence_cap":
                found.append([min(product, most)] * len(ratios))
            case "sequence_mask":
                found.append([product if least < product < most else 0.0] * len(ratios))
            case "geometric_mask":
                found.append([1.0 if least < geometric < most else 0.0] * len(ratios))
            case "outlier_mask":
                found.append([1.0 if all(least < w < most for w in ratios) else 0.0] * len(ratios))
    return found


def value_term(value, old, target, clip=None):
    error = (value - target) ** 2
    if clip is None:
        return error / 2
    near = min(max(value, old - clip), old + clip)
    return max(error, (near - target) ** 2) / 2


def ppo_loss(tokens, *, low, high, dual, entropy, coef, value_clip):
    """Mean loss of tokens given as dicts of numbers: what a joint PPO minimises."""
    total = 0.0
    for t in tokens:
        surrogate = -clip_term(math.exp(t["logp"] - t["old"]), t["advantage"], low, high, dual)
        total += (
            surrogate - entropy * t["entropy"] + coef * value_term(t["value"], t["before"], t["target"], value_clip)
        )
    return total / len(tokens)
