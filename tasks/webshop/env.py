"""The WebShop task: buy what an instruction asks for, by `search[words]` and `click[label]`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from lmgym.env.actions import parse_command
from lmgym.env.env import Observation, Reply, TextEnv
from lmgym.errors import InstanceError
from lmgym.tasks.webshop import SPEC, demonstrator, goals, official, oracle, shop
from lmgym.tasks.webshop.goals import GOALS, ShopGoal
from lmgym.tasks.webshop.nouns import FINDERS, finder
from lmgym.tasks.webshop.reward import Breakdown, best, breakdown, progress
from lmgym.tasks.webshop.session import ShopSession, parse
from lmgym.tasks.webshop.view import MODES, SEPARATOR


class WebShop(TextEnv):
    """The shop by text commands; the reward of the purchase is the score."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        source: str = "procedural",
        products: int = 1000,
        goals: str = "synthetic",
        mode: str = "text",
        length: int = 10,
        price_seed: int = 0,
        nouns: str = "auto",
        show_attributes: bool = False,
        prefixes: bool = False,
        previous_observations: int = 0,
        previous_actions: int = 0,
        progress: float = 0.0,
        instructions: bool = False,
        **common: Any,
    ) -> None:
        """Choose the shop and its observations.

        Args:
            source: "procedural" or "official"; must match the id.
            products: size of the catalogue; 0 for all official products.
            goals: "synthetic" or "human".
            mode: "text", "text_rich", "html", "url", or "brief" for small models.
            length: products per results page.
            price_seed: seed of prices within a range and of price limits.
            nouns: noun finder for titles: "spacy", "own", or "auto" for spaCy if its model is installed.
            show_attributes: True adds a fourth tab to items, Attributes.
            prefixes: True allows searches to start with <r>, <a>, <c> or <q>.
            previous_observations: number of earlier observations shown before the new one.
            previous_actions: number of earlier actions shown before the new observation.
            progress: weight of the growth of AgentBoard's progress score in the reward.
            instructions: True starts the first observation with a description of the actions.
            common: options of every task: split, others, render_mode.
        """
        super().__init__(**common)
        own = self.task.options.get("source", "procedural")
        self.check_choices(source=(source, (own,)), goals=(goals, GOALS), mode=(mode, MODES), nouns=(nouns, FINDERS))
        if length < 1 or min(previous_observations, previous_actions, price_seed) < 0:
            raise InstanceError("length is 1 or more; price_seed and how much is repeated are 0 or more")
        self.goals, self.mode, self.length, self.price_seed = goals, mode, length, price_seed
        self.show_attributes, self.prefixes = show_attributes, prefixes
        self.previous_observations, self.previous_actions = previous_observations, previous_actions
        self.weight, self.instructions = progress, instructions
        self.nouns_name, self.nouns = finder(nouns)
        self.shop = official.shop(products) if source == "official" else shop.procedural(products)
        self.goal: ShopGoal | None = None
        self.session: ShopSession | None = None
        self.verbose: Breakdown = {}  # what the reward of the purchase was made of
        self._shown, self._said = [""], [""]
        self._best = [0.0, 0.0, 0.0]  # match of a results page, of an item page, of the purchase

    def size(self) -> int:
        """Return the number of goals of the split."""
        return goals.size(self.split, self.shop.count(self.goals))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode; `info["nouns"]` names the noun finder."""
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "nouns": self.nouns_name}

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Perform an action; after the purchase, `info["verbose"]` holds the terms of its reward."""
        observation, reward, terminated, truncated, info = super().step(action)
        if terminated:
            info["verbose"] = dict(self.verbose)
        return observation, reward, terminated, truncated, info

    def begin(self, index: int) -> Reply:
        """Open the start page with goal `index` of the split."""
        return self._open(self.shop.goal(self.goals, goals.place(self.split, index), self.price_seed), index)

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open an authored goal: a product's ASIN, instruction, attributes, options and price limit."""
        return self._open(official.authored(self.shop, instance), -1)

    def act(self, action: str) -> Reply:
        """Perform an action; an invalid one changes nothing."""
        valid = self._follow(action)
        return self._answer(self._page(action), valid)

    def oracle(self) -> Iterator[str]:
        """Yield actions that buy the goal's product with its options; none where no search finds it."""
        goal, session = self.begun(self.goal), self.begun(self.session)
        return oracle.play(session, goal, self._price(goal), self.nouns)

    def demonstrator(self) -> Iterator[str]:
        """Yield actions of a buyer who knows the pages alone."""
        return demonstrator.play(self.begun(self.session))

    def admissible(self) -> list[str]:
        """Return every click that the page offers; on the start page, a search for the instruction's words."""
        session = self.begun(self.session)
        if session.kind == "index":
            return [f"search[{demonstrator.query(session.instruction)}]"]
        return [f"click[{label}]" for label in session.clickables()]

    def answer(self) -> str:
        """Return the product and the values of the options that the goal was made from."""
        goal = self.begun(self.goal)
        return " | ".join((goal.asin, *(each if isinstance(each, str) else each[1] for each in goal.options)))

    def fingerprint(self) -> str:
        """Return a digest of the goal."""
        return hashlib.sha256(repr(self.goal).encode()).hexdigest()

    def _open(self, goal: ShopGoal, index: int) -> Reply:
        self.goal, self.verbose, self._best = goal, {}, [0.0, 0.0, 0.0]
        self.session = ShopSession(
            self.shop,
            name="authored" if index < 0 else f"{self.split}_{index}",
            instruction=goal.instruction,
            length=self.length,
            attributes=self.show_attributes,
            chance=self.np_random if self.prefixes else None,
        )
        page = MODES[self.mode](self.session)
        self._shown, self._said = [page], []
        return Reply(f"{self.task.instructions}\n\n{page}" if self.instructions else page)

    def _answer(self, text: str, valid: bool, images: tuple[Any, ...] = ()) -> Reply:
        """Return the reply to an action and its reward, which is 0 if the action failed, even if it bought."""
        session, earned = self.begun(self.session), 0.0
        done = session.kind == "done"
        if done and valid and session.item is not None:
            price = self.shop.price(session.item, self.price_seed)
            earned, self.verbose = breakdown(session.product, self.begun(self.goal), price, session.options, self.nouns)
        reward = {"purchase": earned}
        if self.weight:
            reward["progress"] = self.weight * self._progressed(earned)
        return Reply(text, images=images, reward=reward, done=done, score=earned if done else None, valid=valid)

    def _follow(self, action: str) -> bool:
        """Perform an action if it is valid; if the whole text is no action, try its last line."""
        session = self.begun(self.session)
        name, argument = parse(action)
        if name not in ("search", "click"):
            name, argument = parse(parse_command(action))
        if name == "search" and argument and session.kind != "done":
            session.search(argument)
            return True
        return name == "click" and argument is not None and session.click(argument)

    def _page(self, action: str) -> str:
        """Return the page, preceded by the requested number of earlier observations and actions."""
        page = MODES[self.mode](self.begun(self.session))
        self._said.append(action)
        parts = [page]
        for back in range(1, 1 + max(self.previous_observations, self.previous_actions)):
            if back <= min(len(self._said), self.previous_actions):
                parts.append(self._said[-back])
            if back <= min(len(self._shown), self.previous_observations):
                parts.append(self._shown[-back])
        self._shown.append(page)
        return SEPARATOR.join(reversed(parts))

    def _progressed(self, earned: float) -> float:
        """Return the growth of AgentBoard's progress score."""
        session, before = self.begun(self.session), progress(self._best)
        if session.kind == "search_results":
            looked_at = session.listed
        else:
            looked_at = [] if session.item is None or session.kind == "done" else [session.item]
        here = max(map(self._match, looked_at), default=0.0)
        part = 0 if session.kind == "search_results" else 1
        self._best[part] = max(self._best[part], here)
        self._best[2] = max(self._best[2], earned)
        return progress(self._best) - before

    def _match(self, place: int) -> float:
        price = self.shop.price(place, self.price_seed)
        return best(self.shop.product(place), self.begun(self.goal), price, self.nouns)[0]

    def _price(self, goal: ShopGoal) -> float:
        number = self.shop.number(goal.asin)
        return 0.0 if number is None else self.shop.price(number, self.price_seed)
