"""The answers of a task's players fit into `answer_tokens`; longer ones would be imitated, but cut when sampled."""

import pytest

from lmgym.env.registry import build, find, has_demonstrator
from lmgym.policy.models.tiny import tiny_tokenizer
from tests.components import bubblewrap, chromium

INSTANCES = 12
TASKS = (  # in which an answer is longer than a few words
    *("CarDealer", "Doctor", "FrozenLakeRAGEN", "GuessMyCity", "Mint", "Negotiate", "PythonMath", "Recommender"),
    *("RetailDesk", "SokobanRAGEN", "TextCraft", "TryAgain", "TwentyQuestions", "VisualSearchViGoRL", "WebShop"),
)
IN_CHROMIUM = ("MiniWoB", "Phone", "WebForms", "WebShopBrowser")
IN_SANDBOXES = ("PythonMath", "SWERepair", "Terminal")


@pytest.mark.parametrize(
    "name", [*TASKS, *(pytest.param(name, marks=pytest.mark.slow) for name in (*IN_CHROMIUM, "SWERepair", "Terminal"))]
)
def test_the_answers_of_the_players_fit_into_the_tokens_of_an_answer(name):
    if name in IN_CHROMIUM:
        chromium()
    if name in IN_SANDBOXES:
        bubblewrap()
    spec = find(f"lmgym/{name}-v0")
    tokenizer, env = tiny_tokenizer(), build(spec)
    try:
        for index in range(min(INSTANCES, spec.splits["train"])):
            env.reset(seed=0, options={"index": index})
            player = env.unwrapped.demonstrator() if has_demonstrator(spec) else env.unwrapped.oracle()
            done = False
            while not done:
                answer = next(player)
                tokens = len(tokenizer(answer)["input_ids"]) + 1  # and the end of the answer
                assert tokens <= spec.answer_tokens, answer
                _, _, terminated, truncated, _ = env.step(answer)
                done = terminated or truncated
    finally:
        env.close()
