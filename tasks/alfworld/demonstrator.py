"""A player that uses observations only: it searches in listing order, remembers, fetches, treats and places.

`HouseholdMemory` takes in each (action, observation), whoever acted, and `next_action` depends on it alone. So the
player can take over at any turn of any episode.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lmgym.errors import InstanceError

Exchange = tuple[str, str]  # an action and the observation that answered it
NOTHING = "Nothing happens."
APPLIANCE = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
VERB = {"clean": "clean", "hot": "heat", "cool": "cool"}
SENTENCES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:find|put) (?P<two>two) (?P<thing>\w+)(?: and put them)? (?:in|on) (?P<receptacle>\w+)",
        r"put an? (?P<state>clean|hot|cool) (?P<thing>\w+) (?:in|on) (?P<receptacle>\w+)",
        r"(?P<verb>clean|heat|cool) some (?P<thing>\w+) and put it (?:in|on) (?P<receptacle>\w+)",
        r"put (?:an?|some) (?P<thing>\w+) (?:in|on) (?P<receptacle>\w+)",
        r"(?:look at|examine the) (?P<thing>\w+) (?:under|with) the (?P<lamp>\w+)",
    )
)
VIEW = re.compile(r"(?:On the|The) (?P<name>\w+ \d+)(?:, you| is (?P<state>closed|open))")
SEEN = re.compile(r"\ba (\w+ \d+)")
MOVED = re.compile(r"You (?:move|put) the (\w+ \d+) (?:to|in/on) the (\w+ \d+)\.")
TAKEN = re.compile(r"You pick up the (\w+ \d+) from the (\w+ \d+)\.")
TREATED = re.compile(r"You (clean|heat|cool) the (\w+ \d+) using")
TAKE = re.compile(r"take (\w+ \d+) from (\w+ \d+)")
PUT = re.compile(r"(?:move|put) (\w+ \d+) (?:to|in/on) (\w+ \d+)")


@dataclass(frozen=True)
class Errand:
    """A goal's sentence, parsed."""

    thing: str  # class
    receptacle: str = ""  # class; "" where the thing is to be looked at
    verb: str = ""  # clean, heat, cool
    lamp: str = ""  # class
    count: int = 1


def understand(sentence: str) -> Errand:
    """Parse a templated goal sentence; raise InstanceError for any other."""
    for pattern in SENTENCES:
        if match := pattern.search(sentence):
            words = match.groupdict()
            verb = words.get("verb") or VERB.get(words.get("state") or "", "")
            count = 2 if words.get("two") else 1
            return Errand(words["thing"], words.get("receptacle") or "", verb, words.get("lamp") or "", count)
    raise InstanceError(f"the demonstrator does not understand the goal {sentence!r}")


class HouseholdMemory:
    """A player's memory of an episode."""

    def __init__(self, opening: str, errand: Errand, *, put: str = "move {} to {}") -> None:
        self.errand = errand
        self.put = put  # the game's words for putting a thing into a receptacle
        room = opening.partition("you see")[2].partition("Your task is to")[0]
        self.listing = {name: number for number, name in enumerate(SEEN.findall(room))}
        self.here: frozenset[str] = frozenset()  # receptacles at hand: several where they share a place
        self.last = -1  # listing number of the receptacle walked to last
        self.shut: dict[str, bool] = {}  # of receptacles whose doors were seen
        self.inside: dict[str, list[str]] = {}  # contents as last seen
        self.held = ""
        self.source = ""  # where the held thing came from
        self.states: dict[str, set[str]] = {}  # thing -> verbs that hold of it
        self.stuck: set[str] = set()  # things that cannot be taken, receptacles that refuse the goal's thing
        self.together: dict[str, frozenset[str]] = {}  # receptacles known to share a place

    def take_in(self, action: str, observation: str) -> None:
        """Learn from one exchange, whoever chose the action."""
        action = action.strip()
        if observation == NOTHING:
            self._learn_from_refusal(action)
        elif match := TAKEN.match(observation):
            self.held, self.source = match.groups()
            if self.held in (inside := self.inside.get(self.source, [])):
                inside.remove(self.held)
        elif match := MOVED.match(observation):
            thing, receptacle = match.groups()
            self.inside.setdefault(receptacle, []).append(thing)
            self.held = ""
        elif match := TREATED.match(observation):
            self._treat(*match.groups())
        elif observation.startswith("You close the "):
            self.shut[observation[14:-1]] = True
        else:
            if observation.startswith("You arrive at"):
                receptacle = action.removeprefix("go to ")
                self.here = self.together.get(receptacle, frozenset((receptacle,)))
                self.last = self.listing.get(receptacle, self.last)
            self._view(observation)

    def next_action(self) -> str:
        """Choose the next command."""
        errand = self.errand
        if self.held and self.held.partition(" ")[0] != errand.thing:
            return self._put(self.source)  # it fitted there
        if self.held and errand.lamp:
            return self._light()
        if self.held:
            return self._deliver()
        return self._fetch()

    # Steps of the errand -----------------------------------------------------------------------------------------

    def _fetch(self) -> str:
        """Take an object of the errand: one already treated first, then one at hand, then by listing."""
        errand = self.errand
        target = self._target() if errand.count > 1 else ""
        candidates = [
            (errand.verb not in self.states.get(thing, ()), place not in self.here, self.listing[place], thing, place)
            for place, inside in self.inside.items()
            if place != target
            for thing in inside
            if thing.partition(" ")[0] == errand.thing and thing not in self.stuck
        ]
        if not candidates:
            return self._search()
        *_, thing, place = min(candidates)
        return self._reach(place) or f"take {thing} from {place}"

    def _deliver(self) -> str:
        verb = self.errand.verb
        if verb and verb not in self.states.get(self.held, ()):
            appliance = next((r for r in self.listing if r.partition(" ")[0] == APPLIANCE[verb]), "")
            if appliance:
                return self._walk(appliance) or f"{verb} {self.held} with {appliance}"
        return self._put(self._target())

    def _light(self) -> str:
        for receptacle, inside in self.inside.items():
            for thing in inside:
                if thing.partition(" ")[0] == self.errand.lamp:
                    return self._walk(receptacle) or f"use {thing}"
        return self._search()

    def _target(self) -> str:
        """Return the goal's receptacle: the one that holds most of the goal's objects, else the first listed."""

        def have(receptacle: str) -> int:
            inside = self.inside.get(receptacle, ())
            return sum(thing.partition(" ")[0] == self.errand.thing for thing in inside)

        fitting = [r for r in self.listing if r.partition(" ")[0] == self.errand.receptacle and r not in self.stuck]
        return max(fitting, key=have, default="")

    def _search(self) -> str:
        """Return the action that looks into the next receptacle not yet seen, in listing order."""
        for receptacle in self.here:
            if receptacle not in self.inside:
                return f"open {receptacle}" if self.shut.get(receptacle) else f"examine {receptacle}"
        unseen = [(number <= self.last, number, r) for r, number in self.listing.items() if r not in self.inside]
        return f"go to {min(unseen)[2]}" if unseen else "look"

    def _put(self, receptacle: str) -> str:
        if not receptacle:
            return "look"
        return self._reach(receptacle) or self.put.format(self.held, receptacle)

    def _reach(self, receptacle: str) -> str:
        """Return the action that brings an open receptacle closer; "" when it is at hand."""
        return self._walk(receptacle) or (f"open {receptacle}" if self.shut.get(receptacle) else "")

    def _walk(self, receptacle: str) -> str:
        return "" if receptacle in self.here else f"go to {receptacle}"

    # What an observation tells ------------------------------------------------------------------------------------

    def _learn_from_refusal(self, action: str) -> None:
        name = action.removeprefix("go to ")
        if name != action and name in self.listing and name not in self.here and self.here:
            self.here = self.here | {name}  # no walk, so it stands right here
            self.together.update(dict.fromkeys(self.here, self.here))
        elif (match := TAKE.fullmatch(action)) and not self.held:
            thing, receptacle = match.groups()
            if receptacle in self.here and not self.shut.get(receptacle) and thing in self.inside.get(receptacle, ()):
                self.stuck.add(thing)
        elif (match := PUT.fullmatch(action)) and match[1] == self.held and match[2] in self.here:
            self.stuck |= set() if self.shut.get(match[2]) else {match[2]}

    def _view(self, observation: str) -> None:
        match = VIEW.search(observation)
        if match is None or match["name"] not in self.listing:
            return
        name = match["name"]
        if match["state"]:
            self.shut[name] = match["state"] == "closed"
        if match["state"] != "closed":
            self.inside[name] = SEEN.findall(observation.partition("you see")[2])

    def _treat(self, verb: str, thing: str) -> None:
        states = self.states.setdefault(thing, set())
        states -= {"heat", "cool"} if verb != "clean" else set()
        states.add(verb)
