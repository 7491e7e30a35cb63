"""Every forgery is refused by a message that says what is wrong and where: a board is as good as what it turns away."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.validate import check_name
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError
from tests.board.forge import Change, Forger, validated

State = dict[str, Any]


def field(path: str, wanted: str = "") -> str:
    """Match the refusal of a field by its constraint."""
    return rf"{re.escape(wanted)}.* - at `\$\.{re.escape(path)}`"


def won(episodes: list[State]) -> State:
    """An episode that was won after several turns."""
    return next(each for each in episodes if each["success"] and len(each["turns"]) > 2)


def lost(episodes: list[State]) -> State:
    return next(each for each in episodes if not each["success"])


def entry(**changes: object) -> Change:
    """Change fields of the entry."""
    return lambda state, _: state.update(changes)


def settings(**changes: object) -> Change:
    """Change settings of the entry."""
    return lambda state, _: state["settings"].update(changes)


def outcome(**changes: object) -> Change:
    """Change fields of an episode that was won."""
    return lambda _, episodes: won(episodes).update(changes)


def turn(**changes: object) -> Change:
    """Change fields of the first turn of an episode that was won."""
    return lambda _, episodes: won(episodes)["turns"][0].update(changes)


def all_won(entry: State, episodes: list[State]) -> None:
    for each in episodes:
        each.update(score=1.0, success=True)


def swapped(entry: State, episodes: list[State]) -> None:
    """The record of an instance that was won under the number of one that was lost, with its seed."""
    good, bad = won(episodes), lost(episodes)
    for key in ("turns", "final", "score", "success", "terminated", "truncated", "stop"):
        bad[key] = good[key]


def with_summary(entry: State, episodes: list[State]) -> None:
    """An invalid turn that is called a summary, so that it costs no turn."""
    entry["settings"]["context"] = "summarise:200"
    episode = won(episodes)
    episode["turns"][0] = {**episode["turns"][0], "action": None, "words": episode["turns"][0]["action"]}


def late(entry: State, episodes: list[State]) -> None:
    episode = next(each for each in episodes if each["success"] and len(each["turns"]) < 6)
    episode["turns"] += episode["turns"][-1:]


def summary_as_action(entry: State, episodes: list[State]) -> None:
    episode = next(each for each in episodes if len(each["turns"]) == 4)
    summary = {**episode["turns"][1], "action": "Nothing but a and e so far."}
    episode["turns"].insert(1, summary)


def cut_short(entry: State, episodes: list[State]) -> None:
    episode = lost(episodes)
    del episode["turns"][-1]
    episode.update(stop="max_turns", terminated=False, truncated=True)


FORGERIES: dict[str, tuple[Change, str]] = {
    # what the episodes say of themselves
    "a score": (lambda _, es: lost(es).update(score=1.0), r"states score 1\.0; replay gives 0\.0"),
    "success without score": (lambda _, es: lost(es).update(success=True), r"states success True; with score 0\.0"),
    "all won": (all_won, "states score 1.0"),
    "a reward": (turn(reward=1.0), r"turn 0 states reward 1\.0; replay gives -1\.0"),
    "an observation": (
        lambda _, es: won(es)["turns"][1].update(observation="0" * 16),
        "turn 1 answers another observation",
    ),
    "the last observation": (outcome(final="0" * 16), "ends with another observation"),
    "an action": (turn(action="zzzzz"), "answers another observation"),
    "the seed": (lambda _, es: es[3].update(seed=es[3]["seed"] + 1), "the protocol derives"),
    "the ending": (outcome(stop="max_turns"), "states stop 'max_turns'; replay gives 'done'"),
    "an ending nobody knows": (outcome(stop="enough"), field("stop", "Invalid enum value 'enough'")),
    "terminated for truncated": (
        outcome(terminated=False, truncated=True),
        "states terminated False; replay gives True",
    ),
    "a score beyond 1": (outcome(score=7.0), field("score", "<= 1.0")),
    "a cost below nothing": (outcome(cost=-5.0), field("cost", ">= 0.0")),
    "a cost that no sum holds": (outcome(cost=1e308), field("cost", "<= 1000000.0")),
    "a turn dropped": (cut_short, "before the environment ended it"),
    "a turn after the end": (late, "comes after the end of the episode"),
    "turns beyond the limit": (
        lambda _, es: lost(es).update(turns=lost(es)["turns"] + lost(es)["turns"][:1]),
        "has 7 turns; the limit is 6",
    ),
    "fewer tokens than none": (lambda _, es: es[0].update(tokens_in=-1), field("tokens_in", ">= 0")),
    # which episodes they are
    "an instance dropped": (lambda _, es: es.pop(40), "asks for 93 episodes; this entry has 92"),
    "an instance dropped, and the last doubled": (
        lambda _, es: (es.pop(40), es.append(es[-1])),
        "instance 40, try 0 is missing",
    ),
    "an instance twice": (lambda _, es: es.__setitem__(41, es[40]), "instance 40, try 0 is repeated"),
    "an instance in another's place": (swapped, "instance .* answers another observation|states score"),
    "a foreign instance": (lambda _, es: es[-1].update(index=93), "is not one of the 93 instances"),
    "a try too many": (lambda _, es: es.insert(1, {**es[0], "attempt": 1}), "asks for 93 episodes; this entry has 94"),
    "another try": (lambda _, es: es[5].update(attempt=1), "asks for 1 tries of an instance"),
    "tries that nobody asks for": (entry(tries=2), "with tries 1; this entry states 2"),
    "episodes in another order": (lambda _, es: es.reverse(), "instance 0, try 0 is missing"),
    # what was played
    "another split": (entry(split="train"), "ranked on split 'test'; this entry has 'train'"),
    "another version": (entry(task="lmgym/Wordle-v9"), "cannot verify entries on .*Wordle-v9"),
    "a task without a table": (entry(task="lmgym/MiniWoB-bisect-angle-v0"), "is part of another task and has no table"),
    "a task of a server": (entry(task="lmgym/Remote-v0"), "is played at a server and has no leaderboard"),
    "a task by another name": (entry(task="wordle"), "names its task by the id lmgym/Wordle-v0"),
    "options": (entry(options={"colouring": "counting"}), "default options; this entry has .*counting"),
    "fewer instances": (entry(instances=10), "with instances 93; this entry states 10"),
    "more turns allowed": (entry(max_turns=20), "with max_turns 6; this entry states 20"),
    "tokens over the limit": (
        lambda e, es: (e["settings"].update(max_tokens=3), es[0]["turns"][0].update(ids=[5, 6, 7, 8])),
        "has 4 tokens; this entry's limit is 3",
    ),
    "log-probs of other tokens": (turn(ids=[5, 6], logprobs=[-0.5]), "has 2 tokens and 1 logprobs"),
    "a probability above 1": (turn(ids=[5], logprobs=[0.5]), field("turns[0].logprobs[0]", "<= 0.0")),
    "a token id below 0": (turn(ids=[-1]), field("turns[0].ids[0]", ">= 0")),
    "a token id beyond all": (
        lambda _, es: es[0]["turns"][0].update(ids=[10**19]),
        field("turns[0].ids[0]", "line 1: Expected `int` <="),
    ),
    "a prompt's id beyond all": (
        lambda _, es: es[1]["turns"][0].update(prompt=[1 << 24]),
        field("turns[0].prompt[0]", "line 2: Expected `int` <="),
    ),
    "more tokens than there are": (lambda _, es: es[0].update(tokens_in=10**19), field("tokens_in")),
    "more parameters than there are": (lambda e, _: e["policy"].update(parameters=10**19), field("policy.parameters")),
    "words beside an action": (turn(words="crane"), "turn 0 has words that are not an answer with its action: 'crane'"),
    "a summary that no rule asks for": (turn(action=None), "is a summary, but this entry's context rule asks for none"),
    "an action passed off as a summary": (with_summary, "turn 1 answers another observation than the env"),
    "a summary passed off as an action": (summary_as_action, "turn 2 answers another observation than the"),
    "a seat nobody played": (turn(seat="user"), "is of seat 'user', which is not a seat of this entry"),
    "an unnamed user": (entry(seats=["agent", "user"]), "names its user if and only if"),
    "a seat the task does not have": (
        entry(seats=["agent", "ghost"], user="ghost"),
        "seat 'ghost' has no turn in any episode: lmgym/Wordle-v0 has no such player",
    ),
    "a temperature at which all tokens are alike": (settings(temperature=50), field("temperature", "<= 2.0")),
    "a temperature below 0": (settings(temperature=-0.5), field("temperature", ">= 0.0")),
    "a prompt without end": (settings(prompt="a" * 8001), "prompt has 8,001 characters"),
    "a prompt that runs backwards": (settings(prompt="a\u202eb"), "prompt contains control"),
    "a request that speaks to a terminal": (
        settings(request={"stop": ["\n\x1b[2J"]}),
        "^request contains control characters: U\\+001B$",
    ),
    "a request with an end of words": (
        settings(request={"stop\0": "a"}),
        "^request contains control characters: U\\+0000$",
    ),
    "a request that runs backwards": (
        settings(request={"a": [{"b": "\u202e"}]}),
        "^request contains control characters: U\\+202E$",
    ),
    "a request with a path": (settings(request={"lora": "/home/me/lora"}), "request '/home/me/lora' names a path"),
    "a request with a key": (
        settings(request={"auth": "Bearer abcdefgh12345678"}),
        "^request contains what looks like an API key$",
    ),
    "a request without end": (settings(request={"stop": ["a" * 8001]}), "request has 8,001 characters"),
    "a seed of one's own": (settings(seed=5), field("seed", "settings: Invalid enum value 5")),
    "a context rule nobody knows": (settings(context="bogus"), "unknown --context 'bogus'"),
    "a way of tools nobody knows": (settings(tools="magic"), field("tools", "Invalid enum value 'magic'")),
    "a second answer limit of the agent": (
        settings(max_tokens=1, seat_max_tokens={"agent": 256}),
        "^seat_max_tokens names 'agent'; it limits the entry's seats other than 'agent'$",
    ),
    "an answer limit of nobody": (
        settings(seat_max_tokens={"ghost": 256}),
        "^seat_max_tokens names 'ghost'; it limits the entry's seats other than 'agent'$",
    ),
    "an answer of no tokens": (settings(max_tokens=0), field("max_tokens", ">= 1")),
    "more than all probability": (settings(top_p=1.5), field("top_p", "<= 1.0")),
    "a seat without a policy": (settings(seats={"user": 7}), field("seats[...]", "Expected `str`, got `int`")),
    "an author without a name": (entry(authors=["A. Uthor", ""]), "author '' is blank"),
    "an author of spaces": (entry(authors=["\u2003 "]), "author '\\\\u2003 ' is blank"),
    "no author": (entry(authors=[]), field("authors", "of length >= 1")),
    "a blank title": (entry(title=" "), "title ' ' is blank"),
    "a reference's title": (entry(title="knows  Everything."), "title .* is that of a reference"),
    "a day to come": (entry(date="9999-12-31"), "date 9999-12-31 is in the future"),
    "settings nobody knows": (settings(luck=1), "settings: Object contains unknown field `luck`"),
    "settings of another kind": (settings(temperature="hot"), field("temperature", "Expected `float`, got `str`")),
    "weights by a word": (lambda e, _: e["policy"].update(weights="mine"), field("policy.weights")),
    "an observation by a word": (turn(observation="seen"), field("turns[0].observation")),
    # what the entry claims
    "a mean": (lambda e, _: e["claim"].update(score=1.0), "claims mean score 1.0; its episodes have 0.6"),
    "trained on the split it is ranked on": (
        lambda e, _: e["declared"].update(trained_on=["lmgym/Wordle-v0 test"]),
        "trained on lmgym/Wordle-v0 test, which is held out",
    ),
    "trained on nothing known": (
        lambda e, _: e["declared"].update(trained_on=["lmgym/Nothing-v0 train"]),
        "trained_on 'lmgym/Nothing-v0 train': unknown task",
    ),
    "an identity": (entry(identity="0" * 64), "but these settings have"),
    "other episodes": (lambda e, _: e["episodes"].update(sha256="0" * 64), "does not match the entry's sha256"),
    "a field": (entry(mark="reproduced"), "unknown field `mark`"),
    "a licence": (entry(licence="all rights reserved"), "Invalid enum value 'all rights reserved'"),
    "a number for a word": (entry(title=7), field("title", "Expected `str`, got `int`")),
    "a day that never was": (entry(date="2026-02-30"), "date must have the form"),
    # names, words, links
    "a model in the oracle's place": (
        entry(name="oracle"),
        "oracle is the name of a reference; this policy is a script",
    ),
    "a name that leaves the folder": (entry(name="../x"), field("name", "matching regex")),
    "a name that is not its file's": (entry(name="other"), "belongs in Wordle-v0/other.json"),
    "markup in a title": (entry(title="<img src=x onerror=alert(1)>"), "^title .* contains markup"),
    "markup in an author": (entry(authors=["<b>A</b>"]), "author .* contains markup"),
    "a terminal's escape": (entry(title="\x1b[31mred"), r"title '\\x1b\[31mred' contains control"),
    "a script for a link": (lambda e, _: e["links"].update(code="javascript:alert(1)"), field("links.code")),
    "markup in a link": (lambda e, _: e["links"].update(paper='https://a.org/"><script>'), field("links.paper")),
    "a folder of the author's": (
        lambda e, _: e["policy"].update(name="hf:/home/someone/model"),
        "policy 'hf:/home/someone/model' names a path or a host",
    ),
    "a host": (lambda e, _: e["policy"].update(name="http://gpu7:8000/v1"), "policy 'http.* names a path or a host"),
    "a title without end": (entry(title="a" * 201), field("title", "of length <= 200")),
}
UNSIGNED = {"a mean", "an identity", "other episodes"}  # changed without making the rest fit


def test_the_honest_entry_is_verified(honest: Path) -> None:
    verdict = verify(honest, workers=1)
    assert (verdict.mark, verdict.level) == ("verified", "exact")
    assert 0.5 < verdict.score.low < verdict.score.mean < verdict.score.high < 1


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused(forger: Forger, name: str) -> None:
    change, message = FORGERIES[name]
    path = forger.change(change, signed=name not in UNSIGNED)
    with pytest.raises(SubmissionError, match=message):
        verify(path, workers=1)


def test_messages_tell_forgeries_apart() -> None:
    assert len(FORGERIES) >= 30
    assert len({message for _, message in FORGERIES.values()}) == len(FORGERIES)


GIB = 1 << 30
HOSTILE_JSON = {
    "nested too deeply": (b"[" * 200_000, "nested deeper than 32"),
    "a key twice": (b'{"schema":1,"schema":1}', "the key 'schema' is repeated"),
    "not a number": (b'{"schema":NaN}', "NaN is not a JSON number"),
    "infinity": (b'{"schema":-Infinity}', "-Infinity is not a JSON number"),
    "infinity in digits": (b'{"schema":1e999}', "1e999 is too large"),
    "a number of 5,000 digits": (b'{"schema":' + b"9" * 5000 + b"}", "an integer has 5,000 digits"),
    "lone surrogate": (b'{"schema":"\\ud800"}', "lone surrogate"),
    "not UTF-8": (b'{"schema":"\xff"}', "is not UTF-8"),
    "no JSON": (b"{", "is not JSON"),
    "something after it": (b"{} {}", "is not JSON: Extra data"),
}


@pytest.mark.parametrize("name", HOSTILE_JSON)
@pytest.mark.parametrize("place", ["entry", "episode"])
def test_hostile_json_is_refused(forger: Forger, name: str, place: str) -> None:
    content, message = HOSTILE_JSON[name]
    path = forger.raw(content) if place == "entry" else forger.line(content)
    with pytest.raises(SubmissionError, match=message):
        verify(path, workers=1)


def test_a_key_twice_among_very_many_is_found_in_one_pass() -> None:
    keys = ",".join(f'"{number}":0' for number in [*range(300_000), 299_999])
    with pytest.raises(SubmissionError, match="the key '299999' is repeated"):
        parsing.parse(f"{{{keys}}}".encode(), "a line")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path, _: path.write_bytes(b" " * 262_145), "an entry has at most 262,144"),
        (lambda path, _: entries.episodes_path(path).unlink(), "honest.episodes.jsonl.zst is missing"),
        (lambda path, honest: (path.unlink(), path.symlink_to(honest)), "is a link"),
    ],
    ids=["large", "missing", "link"],
)
def test_an_unreadable_file_is_refused(
    forger: Forger, honest: Path, damage: Callable[[Path, Path], object], message: str
) -> None:
    damage(forger.path, honest)
    with pytest.raises(SubmissionError, match=message):
        verify(forger.path, workers=1)


@pytest.mark.parametrize("spelling", ["spaces", "order", "defaults"])
def test_an_episode_has_one_text_only(forger: Forger, spelling: str) -> None:
    state = json.loads(next(parsing.lines(entries.episodes_path(forger.path))))
    if spelling == "order":
        state = dict(reversed(state.items()))
    if spelling == "defaults":
        state["turns"][0]["seat"] = "agent"
    text = json.dumps(state, separators=None if spelling == "spaces" else (",", ":"), sort_keys=spelling != "order")
    with pytest.raises(SubmissionError, match="not canonical JSON"):
        verify(forger.line(text.encode()), workers=1)


def bomb(*, stated: bool) -> bytes:
    """A frame of a GiB in 35 kB: 256 lines of 4 MiB, so that no line alone is too long."""
    frame = zstandard.ZstdCompressor(level=3).compressobj(size=GIB if stated else -1)
    part = b"0" * ((1 << 22) - 1) + b"\n"
    return b"".join(frame.compress(part) for _ in range(256)) + frame.flush()


def wide() -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(b"x\n") + frame.flush()


def with_dictionary() -> bytes:
    words = zstandard.ZstdCompressionDict(b"\x37\xa4\x30\xec" + b"dictionary" * 50, dict_type=0)
    return zstandard.ZstdCompressor(dict_data=words).compress(b"dictionary\n" * 9)


LINE = b'{"index":0}\n'
FRAMES = {
    "a bomb that says so": (lambda: bomb(stated=True), "states a size of 1,073,741,824 bytes"),
    "one long line": (lambda: parsing.compress(b"x" * ((1 << 23) + 2)), "a line is longer than 8,388,608 bytes"),
    "an oversized window": (wide, "needs a window of 134,217,728 bytes"),
    "a second frame": (lambda: parsing.compress(LINE) * 2, "data after the zstd frame|at `"),
    "bytes after the frame": (lambda: parsing.compress(b"") + b"x", "data after the zstd frame"),
    "a frame to be skipped": (lambda: b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + parsing.compress(LINE), "after the zstd"),
    "half a frame": (lambda: parsing.compress(b"")[:-2], "the zstd frame is cut off|not a zstd file"),
    "no frame": (lambda: b"plain text, not a frame", "is not a zstd file"),
    "nothing": (lambda: b"", "is not a zstd file"),
    "a line without an end": (lambda: parsing.compress(b"{}"), "the last line has no line break"),
}


@pytest.mark.parametrize("name", FRAMES)
def test_hostile_frames_are_refused(forger: Forger, name: str) -> None:
    make, message = FRAMES[name]
    with pytest.raises(SubmissionError, match=message):
        verify(forger.raw_episodes(make()), workers=1)


def test_a_bomb_that_does_not_say_so_is_read_up_to_the_limit_and_no_further(tmp_path: Path) -> None:
    assert len(bomb(stated=True)) < 36_000
    assert (tmp_path / "bomb").write_bytes(bomb(stated=False)) < 36_000
    lengths = (len(line) + 1 for line in parsing.lines(tmp_path / "bomb"))
    assert sum(itertools.islice(lengths, 120)) == 120 << 22  # of the 128 lines that the limit has room for
    with pytest.raises(SubmissionError, match="bomb unpacks to more than 536,870,912 bytes"):
        sum(lengths)


@pytest.mark.parametrize("code", [0x202E, 0x2061, 0x2800, 0x3164, 0xFE00, 0x13441, 0x16FE4, 0x1D159, 0xE0041])
@pytest.mark.parametrize("place", ["title", "author"])
def test_an_invisible_character_is_refused(forger: Forger, code: int, place: str) -> None:
    """U+1D159 and U+13441 are a sign and a letter by category, but are drawn as blanks."""
    for text in (chr(code), f"An honest player{chr(code)}"):
        change = {"title": text} if place == "title" else {"authors": [text]}
        with pytest.raises(SubmissionError, match=f"{place} .* contains the invisible character U\\+{code:04X}"):
            validated(forger.change(lambda e, _, change=change: e.update(change)))


RESERVED = ("con", "prn", "aux", "nul", "com1", "lpt9", "nul.v2", "aux.json", "index", "a..b")
INVALID = ("UPPER", "-dash", "dot.", "a/b", "", "a" * 49, "line\n")


@pytest.mark.parametrize("name", [*RESERVED, *INVALID])
def test_an_unsuitable_name_is_refused(name: str) -> None:
    reason = "is reserved; choose another --name" if name in RESERVED else "is not a valid name: use at most 48 lower-"
    with pytest.raises(SubmissionError, match=f"{re.escape(repr(name))} {reason}"):
        check_name(name)


@pytest.mark.parametrize("name", ["null", "console", "com", "com10", "index-2", "auxiliary", "a.b-c"])
def test_other_names_are_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "words",
    [
        "/no_think",
        "Answer at once. /no_think",
        "Type /look or /inventory, and/or nothing.",
        "skill-based-decision-making",
        "task-specific, risk-averse-decision-making-2026",
        "sk-learn-compatible-pipelines-2-and-more",
        "hf: hf-internal-testing/tiny-random-LlamaForCausalLM",
        "hf_transfer and hf-mirror-of-something-long",
        "ghost-in-the-machine, pk-based-lookups-of-everything",
        "Bearer responsibilities of a waiter",
        "xai-explainable-decision-making-for-agents-in-games",
        "Player \u2764\ufe0f",
    ],
)
def test_honest_words_and_emojis_are_accepted(forger: Forger, words: str) -> None:
    path = forger.change(lambda e, _: (e["settings"].update(prompt=words), e.update(title=words)))
    validated(path)


KEYS = (
    "sk-abcdefghij0123456789ABCDEFGHIJ",
    "sk-proj-abcdefghijklmnop0123.",
    "sk-proj-Ab3_" + "x9Yz" * 12,
    "sk-ant-api03-" + "aB3d" * 20,
    "sk-or-v1-" + "0a1b" * 16,
    "sk_live_" + "4eC39HqLyjWDarjtT1",
    "hf_" + "AbCdEfGhIj" * 3 + "KlMn",
    "ghp_" + "a1B2c3" * 6,
    "github_pat_" + "11ABCDE0" * 4,
    "glpat-" + "aB3dE6gH9jK2mN5pQ8sT",
    "xoxb-123456789012-abcdefghijkl",
    "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "AKIAIOSFODNN7EXAMPLE",
    "gsk_" + "a1B2" * 12,
    "xai-" + "a1B2" * 20,
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
    "Bearer abcdefgh12345678",
)
PATHS = (
    *("see /tmp", "Read /home/me/notes.", "Ask http://gpu7/", "in /home/me", "under ~/models/x", "at ./runs/x"),
    *("/Users", "C:\\me"),
)
KEY, PATH = "contains what looks like an API key$", "names a path or a host"


@pytest.mark.parametrize(
    ("place", "words", "message"),
    [
        *((place, f"use {words}", KEY) for place in ("prompt", "title") for words in KEYS),
        *(("prompt", words, PATH) for words in PATHS),
    ],
)
def test_a_key_or_a_path_is_refused_and_no_key_is_repeated(
    forger: Forger, place: str, words: str, message: str
) -> None:
    path = forger.change(
        lambda e, _: e["settings"].update(prompt=words) if place == "prompt" else e.update(title=words)
    )
    with pytest.raises(SubmissionError, match=f"^{place} .*{message}"):
        validated(path)
