"""Runs inside `.bench-venv`: prints a peer's steps/s on one game. Imports nothing of lmgym.

Usage: peer_games.py PEER GAME SECONDS WORDS; WORDS is a folder that serves as NLTK's, our own word list its corpus.
"""

import contextlib
import io
import os
import sys
import time

GUESSES = [str(number) for number in range(1, 11)]


def gem(game, actions, seconds):
    import gem as library

    env = library.make({"guess_number": "game:GuessTheNumber-v0-easy", "wordle": "game:Wordle-v0-easy"}[game])
    steps, seed, end = 0, 0, time.perf_counter() + seconds
    env.reset(seed=seed)
    start = time.perf_counter()
    while time.perf_counter() < end:
        for action in actions:
            _, _, terminated, truncated, _ = env.step(f"\\boxed{{{action}}}")
            steps += 1
            if terminated or truncated:
                seed += 1
                env.reset(seed=seed)
    return steps / (time.perf_counter() - start)


def textarena(game, actions, seconds):
    import textarena as library

    env = library.make({"guess_number": "GuessTheNumber-v0", "wordle": "Wordle-v0"}[game])
    steps, seed, end = 0, 0, time.perf_counter() + seconds
    env.reset(num_players=1, seed=seed)
    start = time.perf_counter()
    while time.perf_counter() < end:
        for action in actions:
            env.get_observation()
            done, _ = env.step(f"[{action}]")
            steps += 1
            if done:
                env.close()
                seed += 1
                env.reset(num_players=1, seed=seed)
    return steps / (time.perf_counter() - start)


def main():
    peer, game, seconds, words = sys.argv[1:]
    os.environ["NLTK_DATA"] = words
    with open(os.path.join(words, "corpora", "words", "en")) as lines:
        actions = GUESSES if game == "guess_number" else lines.read().split()[:50]
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise), contextlib.redirect_stderr(noise):
        try:
            rate = {"gem-llm": gem, "textarena": textarena}[peer](game, actions, float(seconds))
        except LookupError as error:
            rate = "needs NLTK's " + str(error).partition("Resource")[2].split()[0].strip("\x1b[93m0")
    sys.stdout.write(f"{rate}\n")


main()
