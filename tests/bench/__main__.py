"""`make bench`: speeds as ratios, measured side by side in one run; the median of several rounds.

Peers (gem-llm, textarena) live in a venv of their own, `.bench-venv`, made on demand. Each row plays the same game
with the same actions; resets are part of the time.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess

import desktop
import lmrl
import peers
import sandboxes
import serving
import speeds
import web
import webshop
from rich.console import Console
from rich.table import Table


def imports(console: Console, _: float) -> None:
    """Print the seconds that `import lmgym` takes in a fresh interpreter."""
    seconds = [speeds.import_seconds() for _ in range(5)]
    console.print(f"import lmgym: median {statistics.median(seconds):.3f} s of {len(seconds)} (aim: under 0.3 s)")


def tasks(console: Console, seconds: float) -> None:
    """Print steps/s of every task that can run here, through `gym.make`, without and with admissible actions."""
    table = Table(
        "id",
        "steps/s",
        "with admissible",
        title=f"one process, through gym.make, resets included, {speeds.INSTANCES} instances in turn",
    )
    for task, plain, shown in speeds.all_tasks(seconds):
        table.add_row(task, plain, shown)
    console.print(table)


def against_peers(console: Console, seconds: float) -> None:
    """Print our steps/s beside those of the peers on the same games, interleaved round by round."""
    try:
        peers.python()
    except subprocess.CalledProcessError:
        console.print(f"peers: skipped; install them with: {peers.VENV}/bin/pip install {' '.join(peers.PEERS)}")
        return
    title = "steps/s against peers: same rules, words and actions, resets included"
    table = Table("game", "tries of an instance", "lmgym", "peer", "peer's", "ratio", title=title)
    for row in peers.compare(seconds):
        table.add_row(*row)
    console.print(table)


def against_lmrl(console: Console, seconds: float) -> None:
    """Print our maze and Text-Nav beside what LMRL-Gym's release does at a step and a reset."""
    title = "steps/s beside the steps of LMRL-Gym's release, demonstrated actions, resets included"
    table = Table("task", "lmgym", "as released", "ratio", title=title)
    for row in lmrl.rows(seconds):
        table.add_row(*row)
    aim = "aim: 10, for the maze by many: its released step is shorter than one call through Gymnasium's wrappers"
    console.print(table, aim)


def alfworld(console: Console, seconds: float) -> None:
    """Print our ALFWorld engine beside the stock one on the same game files."""
    table = Table("engine", "steps/s", "reset (ms)", title="ALFWorld, the same game files and actions")
    ours, stock = speeds.alfworld_engines(seconds)
    table.add_row("stock (textworld PddlEnv)", f"{stock.steps:,.1f}", f"{stock.reset * 1e3:,.0f}")
    table.add_row("lmgym", f"{ours.steps:,.0f}", f"{ours.reset * 1e3:,.2f}")
    console.print(table, f"ratio {ours.steps / stock.steps:,.0f} (aim: 300)")


def webshops(console: Console, seconds: float) -> None:
    """Print WebShop's speeds at two sizes, its pages against the original's way, and its instructions' shape."""
    title = (
        f"WebShop, {webshop.ENVIRONMENTS} environments of a process, mode text, demonstrated episodes, processor time"
    )
    columns = ("products", "first start (s)", "start (s)", "steps/s", "MB", "search p50 (ms)", "p99 (ms)")
    table = Table(*columns, title=title)
    for row in webshop.sizes(seconds):
        table.add_row(*row)
    direct, source, read = webshop.pages()
    console.print(table, f"a page: {direct:.1f} us as text, {source:.1f} us as HTML, {read:,.0f} us read out of HTML")
    console.print(f"ratio {read / direct:,.0f} (aim: 20)")
    said = "; ".join(f"{theirs} {ours}" for theirs, ours in webshop.titles())
    console.print(f"title scores of the original's tests, by spaCy's nouns and by ours: {said}")
    said = ", ".join(f"{name} {value:.3g}" for name, value in webshop.agreement().items())
    console.print(f"our nouns against spaCy's, and the title scores that follow: {said}")
    columns = ("instructions", "", "words", "10 %", "median", "90 %", "characters", "clauses")
    table = Table(*columns, title="WebShop, human-style instructions without the price")
    for row in webshop.instructions():
        table.add_row(*row)
    console.print(table)
    columns = ("tokenizer", "shown", "start", "results", "item", "action", "episode")
    table = Table(*columns, title="WebShop, tokens, means of 150 demonstrated episodes")
    for row in webshop.tokens():
        table.add_row(*row)
    said = "; ".join(f"{name} {share:.1f} %" for name, share in webshop.first_hits())
    console.print(table, f"500 test instructions searched as they are find first what could earn 1: {said}")


def browsers(console: Console, seconds: float) -> None:
    """Print MiniWoB++'s steps/s and resets/s in several contexts of one browser."""
    title = "MiniWoB++ in one Chromium, a thread a context, the page's time included"
    table = Table("observation", "contexts", "steps/s", "resets/s", "processor ms/step", title=title)
    for view, contexts, steps, resets, taken in web.rates(seconds):
        table.add_row(view, str(contexts), f"{steps:,.0f}", f"{resets:,.1f}", f"{taken:.1f}")
    console.print(table, "aim: 170 to 370 steps/s without pixels, 54 to 150 with")


def desktops(console: Console, seconds: float) -> None:
    """Print the start, reset, speed and memory of desktops, with 1, 4 and 8 at once."""
    columns = (
        "desktops",
        "start (s)",
        "reset, editor (s)",
        "reset, Calc (s)",
        "keys/s, picture",
        "keys/s, tree",
        "MiB each",
    )
    table = Table(*columns, title="desktops at once, a thread each; a key is typed and the screen rests")
    for row in desktop.rows(seconds):
        table.add_row(*row)
    console.print(table, "aim: warm reset under 2 s")


def sampler(console: Console, _: float) -> None:
    """Print sampled tokens/s of the session beside `generate` afresh each turn."""
    table = Table("sampler", "tokens/s", title="tiny, 64 environments, 10 turns, answers of 8 to 48 tokens")
    kept, halved, afresh = speeds.samplers()
    table.add_row("generate() afresh each turn", f"{afresh:,.0f}")
    table.add_row("session with kept cache", f"{kept:,.0f}")
    table.add_row("the same in bfloat16", f"{halved:,.0f}")
    console.print(table, f"ratio {kept / afresh:.1f} (aim: 3)")


def served(console: Console, seconds: float) -> None:
    """Print steps/s of served environments beside OpenEnv's."""
    title = "GuessNumber behind a server on loopback, in a process of its own, resets included"
    table = Table("sessions", "lmgym serve", "OpenEnv 0.10", "ratio", title=title)
    for name, ours, theirs, ratio in serving.compare(seconds):
        table.add_row(name, f"{ours:,.0f}", "-" if theirs is None else f"{theirs:,.0f}", f"{ratio:.1f}")
    console.print(table, "aim: 5 for sessions in one message, against OpenEnv's best; it has no such message")
    console.print(serving.UNEQUAL)


def boxes(console: Console, seconds: float) -> None:
    """Print how fast sandboxes run commands and start, by engine, and how fast SWERepair is played and made."""
    columns = ("engine", "at once", "run p50 (ms)", "p99", "shell p50 (ms)", "p99", "runs/s in all", "starts/s in all")
    table = Table(*columns, title="sandboxes, each with a thread of its own; a start includes the end")
    for engine, number, *figures in sandboxes.rates(seconds):
        table.add_row(engine, str(number), *(f"{each:,.2f}" for each in figures))
    reasons = [f"{engine}: {reason}" for engine, reason in sandboxes.available().items() if reason]
    console.print(table, *reasons, sep="\n")
    table = Table("", "a minute", title="SWERepair in the default engine, one process; instances are made, not cached")
    for name, rate in zip(("episodes of the oracle", "instances made"), sandboxes.repairs(seconds), strict=True):
        table.add_row(name, f"{rate:,.1f}")
    console.print(table)


SECTIONS = {
    "import": imports,
    "tasks": tasks,
    "peers": against_peers,
    "lmrl": against_lmrl,
    "alfworld": alfworld,
    "webshop": webshops,
    "web": browsers,
    "sandboxes": boxes,
    "desktop": desktops,
    "sampler": sampler,
    "serving": served,
}


def main() -> None:
    """Run the sections that were asked for, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=", ".join(SECTIONS))
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measured round")
    arguments = parser.parse_args()
    if unknown := set(arguments.sections) - set(SECTIONS):
        parser.error(f"unknown section {unknown.pop()}; known: {', '.join(SECTIONS)}")
    console = Console()
    for name in arguments.sections or SECTIONS:
        SECTIONS[name](console, arguments.seconds)


if __name__ == "__main__":
    main()
