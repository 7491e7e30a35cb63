"""Runs inside `.bench-venv`: prints a peer's steps/s on one game. Imports nothing of lmgym.

Usage: peer_games.py JOB; JOB is JSON: the peer, the game, actions, seconds, tries of an instance, and our word list.
The peers' own list is NLTK's, which is a download: the game's class is theirs, the words are ours on both sides.
"""

import contextlib
import io
import itertools
import json
import os
import sys
import tempfile
import time
from pathlib import Path

GEM = {  # the registered game whose rules are nearest, and what makes it the same
    "guess_number": ("game:GuessTheNumber-v0-easy", {"min_number": 1, "max_number": 10, "max_turns": 10}),
    "wordle": ("game:Wordle-v0-hard", {"word_length": 5, "max_turns": 6}),
    "sokoban": ("game:Sokoban-v0-easy", {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 30}),
}
TEXTARENA = {
    "guess_number": ("GuessTheNumber-v0", {"min_number": 1, "max_number": 10, "max_turns": 10}),
    "wordle": ("Wordle-v0", {"word_length": 5, "num_guesses": 6}),
    "sokoban": ("Sokoban-v0", {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 30}),
    "frozen_lake": ("FrozenLake-v0", {"randomize_start_goal": True}),
    "tic_tac_toe": ("TicTacToe-v0", {}),
    "connect_four": ("ConnectFour-v0", {}),
    "kuhn_poker": ("KuhnPoker-v0", {"max_rounds": 1}),
}
PLAYERS = {"tic_tac_toe": 2, "connect_four": 2, "kuhn_poker": 2}  # games of more than one player


def gem(job):
    import gem as library

    name, options = GEM[job["game"]]
    env = library.make(name, **options)

    def step(action):
        _, _, terminated, truncated, _ = env.step(f"\\boxed{{{action}}}")
        return terminated or truncated

    return rate(job, lambda seed: env.reset(seed=seed), step)


def textarena(job):
    import textarena as library

    name, options = TEXTARENA[job["game"]]
    players = PLAYERS.get(job["game"], 1)
    if job["game"] == "wordle":
        from textarena.envs.Wordle.env import WordleEnv

        def ours(self, hardcore=False):  # theirs asks a tagger, another download, which words of NLTK's are nouns
            self.word_list = list(job["words"])

        WordleEnv._load_word_list = ours
    env = library.make(name, **options)

    def reset(seed):
        env.close()
        env.reset(num_players=players, seed=seed)

    def step(action):
        env.get_observation()
        done, _ = env.step(f"[{action}]")
        return done

    env.reset(num_players=players, seed=0)  # what was never reset cannot be closed
    return rate(job, reset, step)


def rate(job, reset, step):
    """Return steps/s, resets included, until the first episode that ends after `seconds`, as for lmgym."""
    said = itertools.cycle(job["actions"])
    steps = episodes = 0
    start = time.perf_counter()
    while time.perf_counter() < start + job["seconds"]:
        reset(episodes // job["tries"])
        over = False
        while not over:
            over = step(next(said))
            steps += 1
        episodes += 1
    return steps / (time.perf_counter() - start)


def main():
    job = json.loads(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpora", "words")
        corpus.mkdir(parents=True)
        for name in ("en", "en-basic", "README"):
            (corpus / name).write_text("\n".join(job["words"]) + "\n")
        os.environ["NLTK_DATA"] = folder
        noise = io.StringIO()
        with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
            import nltk

            nltk.download = lambda *names, **options: True  # there is no network to ask
            found = {"gem-llm": gem, "textarena": textarena}[job["peer"]](job)
    sys.stdout.write(f"{found}\n")


main()
