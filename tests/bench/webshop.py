"""WebShop's speeds: start-up, steps, memory and search at two sizes; pages written directly against read from HTML.

All but the start is in seconds of the processor, which other work on the machine does not lengthen.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

ENVIRONMENTS = 16
SIZES = (1_000, 100_000)
OFFICIAL = Path(__file__).parents[3] / "shared" / "data" / "webshop" / "human_goals.json"
CLAUSES = re.compile(r"[,.;]| and | with | that | which | in ")

RUN = """
import json, sys, time
size, mode, count, seconds = json.loads(sys.argv[1])
start = time.perf_counter()
from lmgym.env.registry import build
envs = [build("WebShop-v0", split="train", products=size, mode=mode, length=10) for _ in range(count)]
for i, env in enumerate(envs):
    env.reset(seed=0, options={"index": i})
opened = time.perf_counter() - start
steps, episode, start = 0, 0, time.process_time()
while time.process_time() < start + seconds:
    env = envs[episode % count]
    env.reset(seed=0, options={"index": episode % env.unwrapped.size()})
    episode += 1
    for action in env.unwrapped.demonstrator():
        _, _, terminated, truncated, _ = env.step(action)
        steps += 1
        if terminated or truncated:
            break
rate = steps / (time.process_time() - start)
memory = int(open("/proc/self/statm").read().split()[1]) * 4096
shop = envs[0].unwrapped.shop
words = [shop.goal("human", place, 0).instruction for place in range(1000)]
taken = []
for text in words:
    begun = time.process_time()
    shop.index._hits(text)  # not from memory
    taken.append(time.process_time() - begun)
taken.sort()
print(json.dumps([opened, rate, memory, taken[500], taken[990]]))
"""


def sizes(seconds: float) -> Iterator[tuple[str, ...]]:
    """Yield a row a catalogue: products, seconds to build, to open, steps/s, MB, ms of a search (p50, p99)."""
    for size in SIZES:
        with tempfile.TemporaryDirectory() as cache:
            built, *_ = _run(cache, size, "text", 1, 0.1)
            opened, rate, memory, middle, last = _run(cache, size, "text", ENVIRONMENTS, seconds)
        yield (
            *(f"{size:,}", f"{built:.2f}", f"{opened:.2f}", f"{rate:,.0f}", f"{memory / 1e6:,.0f}"),
            *(f"{middle * 1e3:.2f}", f"{last * 1e3:.2f}"),
        )


def _run(cache: str, *arguments: object) -> list[float]:
    command = [sys.executable, "-c", RUN, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "LMGYM_CACHE": cache})
    found: list[float] = json.loads(done.stdout)
    return found


def pages(rounds: int = 5) -> tuple[float, float, float]:
    """Return the microseconds of a page: as text written directly, as HTML, and as text read out of that HTML."""
    from bs4 import BeautifulSoup
    from bs4.element import Comment

    from lmgym.tasks.webshop.page import html
    from lmgym.tasks.webshop.session import ShopSession
    from lmgym.tasks.webshop.shop import procedural
    from lmgym.tasks.webshop.view import text

    unseen = {"style", "script", "head", "title", "meta", "[document]"}

    def read(session: ShopSession) -> str:
        found = BeautifulSoup(html(session), "html.parser").find_all(string=True)
        shown = [t for t in found if t.parent.name not in unseen and not isinstance(t, Comment) and t != "\n"]
        return " [SEP] ".join(t.strip() for t in shown)

    sessions = []
    for words in ("dog bed", "phone case", "coffee"):
        for clicks in ((), (2,), (2, "description"), ("next >",)):
            session = ShopSession(procedural(1000), name="0", instruction="i need a soft bed in blue")
            session.search(words)
            for click in clicks:
                session.click(list(session.clickables())[click] if isinstance(click, int) else click)
            sessions.append(session)
    direct, source, out_of_html = ([] for _ in range(3))
    for _ in range(rounds):
        direct.append(_microseconds(text, sessions, 200))
        source.append(_microseconds(html, sessions, 50))
        out_of_html.append(_microseconds(read, sessions, 3))
    return statistics.median(direct), statistics.median(source), statistics.median(out_of_html)


def titles() -> Iterator[tuple[str, str]]:
    """Yield the title scores that the original's tests expect of spaCy's model, and ours."""
    from lmgym.tasks.webshop import nouns

    sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))
    from webshop_files import PUBLISHED

    for bought, wanted, published, _ in PUBLISHED:
        yield " or ".join(map(str, published)), f"{nouns.title_score(bought, wanted, nouns.own):.2f}"


def agreement() -> dict[str, float]:
    """Return precision and recall of our nouns against spaCy's on marketplace titles."""
    from lmgym.tasks.webshop import nouns

    sys.path.insert(0, str(Path(__file__).parents[1] / "tasks"))
    import webshop_titles

    return webshop_titles.agreement(nouns.own)


def _microseconds(function: object, sessions: Sequence[object], times: int) -> float:
    start = time.process_time()
    for _ in range(times):
        for session in sessions:
            function(session)
    return (time.process_time() - start) / (times * len(sessions)) * 1e6


def instructions() -> Iterator[tuple[str, ...]]:
    """Yield statistics of our human-style instructions, and of the official ones if present."""
    from lmgym.tasks.webshop.shop import procedural

    shop = procedural(1000)
    goals = [shop.goal("human", place, 0).instruction for place in range(shop.count("human"))]
    ours = [re.sub(r", and price lower than [\d.]+ dollars$", "", text) for text in goals]
    known = {"official": json.loads(OFFICIAL.read_text())} if OFFICIAL.is_file() else {}
    for name, texts in {**known, "ours": ours}.items():
        words = [len(text.split()) for text in texts]
        tenths = statistics.quantiles(words, n=10)
        shape = (statistics.fmean(words), tenths[0], statistics.median(words), tenths[-1])
        characters = statistics.fmean(map(len, texts))
        clauses = statistics.fmean(len(CLAUSES.findall(text)) for text in texts)
        yield name, f"{len(texts):,}", *(f"{value:.1f}" for value in (*shape, characters)), f"{clauses:.2f}"


def tokens(episodes: int = 150) -> Iterator[tuple[str, ...]]:
    """Yield a row per tokenizer and view: mean tokens of a page of each kind, of an action and of an episode."""
    from lmgym.env.registry import build
    from lmgym.policy.models.tiny import tiny_tokenizer

    for vocabulary, (mode, length) in product(("tiny", "webshop"), (("brief", 4), ("text", 10))):
        words = tiny_tokenizer(vocabulary)
        env = build("WebShop-v0", split="train", mode=mode, length=length)
        seen: dict[str, list[int]] = {}
        whole = []
        for index in range(episodes):
            observation, _ = env.reset(seed=0, options={"index": index})
            said = [(env.unwrapped.session.kind, observation["text"])]
            for action in env.unwrapped.demonstrator():
                observation, _, terminated, truncated, _ = env.step(action)
                said += [("action", action), (env.unwrapped.session.kind, observation["text"])]
                if terminated or truncated:
                    break
            counts = [(kind, len(words.encode(text, add_special_tokens=False))) for kind, text in said]
            whole.append(sum(count for _, count in counts))
            for kind, count in counts:
                seen.setdefault(kind, []).append(count)
        kinds = ("index", "search_results", "item_page", "action")
        yield (
            vocabulary,
            f"{mode}, {length} products",
            *(f"{statistics.fmean(seen[kind]):,.0f}" for kind in kinds),
            (f"{statistics.fmean(whole):,.0f}"),
        )


def first_hits(count: int = 500) -> Iterator[tuple[str, float]]:
    """Yield how many of a hundred test instructions, searched as they are, find first what could earn 1."""
    from lmgym.env.registry import build
    from lmgym.tasks.webshop.reward import best

    for name in ("WebShop-v0", "WebShopHuman-v0"):
        env = build(name, split="test").unwrapped
        right = 0
        for index in range(count):
            env.reset(seed=0, options={"index": index})
            found = env.shop.search(env.goal.instruction)
            if len(found):
                product, price = env.shop.product(found[0]), env.shop.price(found[0], 0)
                right += best(product, env.goal, price, env.nouns)[0] == 1.0
        yield name, 100 * right / count
