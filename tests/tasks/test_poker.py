"""Kuhn and Leduc poker: rules and figures beside OpenSpiel's, rewards by option, exact references."""

import numpy as np
import pytest

from lmgym.env.games.hidden import equilibrium, game_tree
from lmgym.env.games.solve import TableStrategy, best_response, cfr, expected_payoff, exploitability
from lmgym.env.games.state import CHANCE, OVER, uniform
from lmgym.env.golden import play
from lmgym.env.registry import build, load, specs

GAMES = {"kuhn_poker": "KuhnPoker", "leduc_poker": "LeducPoker"}
UNIFORM = {"kuhn_poker": 11 / 24, "leduc_poker": 2.373611111}  # OpenSpiel's exploitability of random actions


def root(name):
    return game_tree(load(specs()[f"lmgym/{GAMES[name]}-v0"]).ROOT)


def solved(name):
    return equilibrium(f"lmgym.tasks.{name}")


@pytest.mark.parametrize("name", GAMES)
def test_random_actions_are_as_exploitable_as_openspiel_says(name):
    assert exploitability(root(name), uniform) == pytest.approx(UNIFORM[name], abs=1e-9)


@pytest.mark.parametrize(("name", "value"), [("kuhn_poker", -1 / 18), ("leduc_poker", -0.0856)])
def test_the_shipped_strategy_is_an_equilibrium(name, value):
    assert exploitability(root(name), solved(name)) < 0.001
    assert expected_payoff(root(name), solved(name), solved(name)) == pytest.approx(value, abs=1e-4)


def test_cfr_solves_kuhn_poker():
    tree = root("kuhn_poker")
    strategy = TableStrategy(cfr(tree, 200))
    assert exploitability(tree, strategy) < 0.01
    # in every equilibrium the second player bluffs with a Jack and calls with a Queen one time in three
    table = cfr(tree, 1000)
    assert table["Jp"][1] == pytest.approx(1 / 3, abs=0.01)
    assert table["Qb"][1] == pytest.approx(1 / 3, abs=0.01)


@pytest.mark.slow
def test_cfr_solves_leduc_poker():
    tree = root("leduc_poker")
    assert exploitability(tree, TableStrategy(cfr(tree, 200))) < 0.01


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize(("suffix", "opponent"), [("", "cfr"), ("Random", "random")])
def test_the_references_are_exact(name, suffix, opponent):
    references = specs()[f"lmgym/{GAMES[name]}{suffix}-v0"].references
    strategy, tree = solved(name) if opponent == "cfr" else uniform, root(name)
    most = load(specs()[f"lmgym/{GAMES[name]}-v0"]).MOST
    best = sum(best_response(tree, player, strategy)[0] for player in (0, 1))
    chance = expected_payoff(tree, uniform, strategy) - expected_payoff(tree, strategy, uniform)
    assert 0.5 + best / 4 / most == pytest.approx(references["oracle"], abs=5e-5)
    assert 0.5 + chance / 4 / most == pytest.approx(references["random"], abs=5e-5)
    assert 0.5 - 1 / most / 2 == pytest.approx(references["null"], abs=5e-5)


@pytest.mark.parametrize("name", GAMES)
def test_the_oracle_earns_its_reference(name):
    env = build(f"{GAMES[name]}Random-v0", split="test")
    scores = [
        play(env, lambda task: task.oracle(), index=index, seed=seed).infos[-1]["score"]
        for seed in range(5)
        for index in range(env.unwrapped.size())
    ]
    error = np.std(scores) / len(scores) ** 0.5
    assert abs(np.mean(scores) - specs()[f"lmgym/{GAMES[name]}Random-v0"].references["oracle"]) < 4 * error


WORDS = {  # OpenSpiel's numbers of actions by our words
    "kuhn_poker": {"check": 0, "fold": 0, "bet": 1, "call": 1},
    "leduc_poker": {"fold": 0, "call": 1, "raise": 2},
}


@pytest.mark.parametrize("name", GAMES)
def test_every_history_is_openspiels(name):
    pyspiel = pytest.importorskip("pyspiel")
    game = pyspiel.load_game(name, {"suit_isomorphism": True} if name == "leduc_poker" else {})

    def compare(state, theirs):
        if theirs.is_terminal():
            assert state.player == OVER
            assert theirs.returns() == [state.payoff(), -state.payoff()]
            return 1
        if theirs.is_chance_node():
            return sum(compare(*pair) for pair in dealt(state, theirs))
        assert state.player == theirs.current_player()
        assert [WORDS[name][action] for action in state.actions()] == theirs.legal_actions()
        pairs = zip(state.actions(), theirs.legal_actions(), strict=True)
        return sum(compare(state.after(action), theirs.child(number)) for action, number in pairs)

    def dealt(state, theirs):
        """Pair the outcomes of chance; OpenSpiel's Kuhn poker deals one card at a time."""
        if name == "leduc_poker":
            chances = dict(theirs.chance_outcomes())
            assert [chance for _, chance in state.outcomes()] == pytest.approx(list(chances.values()))
            return [(after, theirs.child(rank)) for (after, _), rank in zip(state.outcomes(), chances, strict=True)]
        return [(after, theirs.child(after.cards[0]).child(after.cards[1])) for after, _ in state.outcomes()]

    root_state = load(specs()[f"lmgym/{GAMES[name]}-v0"]).ROOT
    assert root_state.player == CHANCE
    assert compare(root_state, game.new_initial_state()) == {"kuhn_poker": 30, "leduc_poker": 9 * 4 + 24 * 5 * 9}[name]


def hand(actions, **options):
    """Play instance 0 of Kuhn poker in both seats: Jack against Queen, the agent first."""
    env = build("kuhn_poker", others="caller", **options)
    env.reset(seed=0, options={"index": 0})
    return [env.step(action) for action in actions]


@pytest.mark.parametrize(
    ("reward", "earned", "over"),
    [
        ("game", [0.0, 0.0, -1.0], [False, False, True]),
        ("mars", [-11.0], [True]),
        ("textarena", [0.0, -1.0], [False, True]),
    ],
)
def test_invalid_answers_by_reward_scheme(reward, earned, over):
    steps = hand(["raise", "check bet", "fold"][: len(over)], reward=reward)
    assert [step[1] for step in steps] == earned
    assert [step[2] for step in steps] == over
    assert not any(step[4]["valid"] for step in steps)
    assert steps[-1][4]["seat_rewards"]["opponent"] == (0.0 if reward == "mars" else 1.0)
    assert (steps[-1][4]["score"], steps[-1][4]["success"]) == (0.25, False)


@pytest.mark.parametrize(("reward", "lost"), [("game", 2.0), ("mars", 2.0), ("textarena", 1.0)])
def test_the_lower_card_loses_a_called_bet(reward, lost):
    *_, last = hand(["BET", "<think>fold?</think><answer><Call></answer>"], reward=reward)
    assert last[1] == lost  # the opponent acted last, and holds the Queen
    assert last[4]["seat_rewards"] == {"opponent": lost, "agent": -lost}
    assert last[4]["seat_scores"] == {"agent": 0.0, "opponent": 1.0}
    assert last[0]["text"] == "Player 1 bets. Player 2 calls. Player 1: Jack. Player 2: Queen. Player 2 wins 2 chips."


def test_a_fold_shows_no_cards_and_two_choices_at_once_are_none():
    *_, last = hand(["[bet]", "[pass]"])
    assert last[0]["text"] == "Player 1 bets. Player 2 folds. Player 1 wins 1 chip."
    (step,) = hand(["[check] [bet]"])
    assert not step[4]["valid"]


def test_each_seat_sees_its_own_card_and_reads_the_rules_once():
    steps = hand(["check", "bet"])
    texts = [step[0]["text"] for step in steps]
    assert "You are player 2. Your card: Queen." in texts[0]
    assert "Jack." not in texts[0]
    assert texts[0].startswith("Kuhn poker.")
    assert texts[1] == "You are player 1. Your card: Jack. Player 1 checks. Player 2 bets. Answer fold or call."


@pytest.mark.parametrize("name", GAMES)
def test_an_observation_tells_the_information_set(name):
    texts = {}
    env = build(GAMES[name] + "-v0", others="caller")
    for index in range(env.unwrapped.size()):
        observation, _ = env.reset(seed=index, options={"index": index})
        over, chance = False, np.random.default_rng(index)
        while not over:
            state = env.unwrapped.state
            text = observation["text"].rpartition("\n\n")[2]
            assert texts.setdefault(text, (state.player, state.view())) == (state.player, state.view())
            observation, _, over, _, _ = env.step(str(chance.choice(list(state.actions()))))
