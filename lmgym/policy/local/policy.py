"""A policy that runs here: a causal language model with its tokenizer and chat template, sampled and scored."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from transformers.utils import logging

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, extends
from lmgym.policy.local.decoder import Decoder, FusedDecoder, SideBySide
from lmgym.policy.local.forward import head_of, known, network
from lmgym.policy.local.model_decoder import ModelDecoder
from lmgym.policy.local.sampling import Adjust, Sampling
from lmgym.policy.local.score import score, states
from lmgym.policy.local.session import LocalSession
from lmgym.policy.local.slots import KeyValues
from lmgym.policy.local.template import ChatTemplate
from lmgym.policy.models.vision import Gallery, Media, Vision
from lmgym.types import Completion, Message, Picture, Trajectory, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class LocalPolicy:
    """Samples in batches and scores with gradients.

    The model's own parameters are what a learner changes; call `update` after it did. `dtype` is of the weights that
    sample (bfloat16 is two to three times faster); scoring uses the parameters as they are.
    """

    wants: frozenset[str] = frozenset()

    def __init__(
        self,
        model: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        *,
        name: str,
        sampling: Sampling | None = None,
        device: str | torch.device = "cpu",
        dtype: torch.dtype | None = None,
        context: int | None = None,
        adjust: Adjust | None = None,
        options: Mapping[str, Any] | None = None,
        vision: Vision | None = None,
    ) -> None:
        """`context` limits the tokens of a segment, `options` go to the chat template, `vision` makes it see."""
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.name = name
        self.version = 0
        self.sampling = sampling or Sampling()
        self.adjust = adjust
        self.dtype = dtype or next(model.parameters()).dtype
        self.gallery = None if vision is None else Gallery(vision)  # the pictures that it is shown
        self.template = ChatTemplate(tokenizer, options=options, gallery=self.gallery)
        self.stops = self.template.stops | _ends(model)
        self.context = min(context or _positions(model), _positions(model))
        _check_size(model, tokenizer)
        self._decoder: Callable[[KeyValues], Decoder] | None = None  # of the present weights
        self._beside: PreTrainedModel | None = None  # a second model, whose states `adjust` reads

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return torch.device(self.model.device)

    def see(self, pictures: Mapping[str, bytes]) -> None:
        """Look pictures up in `pictures` from here on, PNGs by digest; an engine that plays says so itself."""
        if self.gallery is not None:
            self.gallery.pictures = pictures

    @cached_property
    def tokens(self) -> str:
        """Digest of tokenizer, template and eyes' settings: episodes with the same one hold ids of this policy's."""
        backend: Any = self.tokenizer.backend_tokenizer
        content = f"{backend.to_str()}\n{self.tokenizer.chat_template}"
        if self.gallery is not None:
            content += f"\n{self.gallery.vision.settings}"
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        session = self.session()
        for i, conversation in enumerate(conversations):
            session.put(i, conversation)
        return _finished(session, len(conversations))

    def sample(
        self,
        prefixes: Sequence[Sequence[int]],
        n: int = 1,
        *,
        noise: Sequence[int] = (0,),
        numbers: Sequence[int] | None = None,
        max_tokens: int | None = None,
        pictures: Sequence[tuple[Picture, ...]] | None = None,
    ) -> list[list[Completion]]:
        """Answer each prefix of ids `n` times, without an environment.

        The noise of an answer follows from `noise`, the number of its prefix (None: its place) and which try it is.
        """
        session = self.session()
        for i, (number, prefix) in enumerate(zip(numbers or range(len(prefixes)), prefixes, strict=True)):
            for j in range(n):
                key = i * n + j
                name, shown = (*noise, number, j), pictures[i] if pictures else ()
                session.put_ids(key, (), prefix, fresh=True, noise=name, max_tokens=max_tokens, pictures=shown)
        answers = _finished(session, len(prefixes) * n)
        return [answers[i * n : (i + 1) * n] for i in range(len(prefixes))]

    def session(self) -> LocalSession:
        """A new session with its own cache."""
        return LocalSession(self)

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that `messages` take, rendered from nothing."""
        return self.template.count(messages)

    def prompt(self, conversation: Conversation) -> tuple[list[int], bool]:
        """Ids that are new in a conversation, and whether they render all of it (`fresh`)."""
        return self.template.extend(conversation)

    def pictures(self, conversation: Conversation, prompt: Sequence[int], *, fresh: bool) -> tuple[Picture, ...]:
        """Where in `prompt`, which `prompt()` made of a conversation, pictures stand."""
        return self.template.pictures(conversation, prompt, fresh=fresh)

    def text(self, answer: Sequence[int]) -> str:
        """Words of a sampled answer, up to the end of the first stop string."""
        words = self.template.vocabulary.text(answer[:-1] if answer and answer[-1] in self.stops else answer)
        ends = [words.find(stop) + len(stop) for stop in self.sampling.stop if stop in words]
        return words[: min(ends)] if ends else words

    def stopped(self, answer: Sequence[int]) -> bool:
        """Whether a stop string has come up in the last tokens of an answer."""
        longest = max(map(len, self.sampling.stop), default=0)
        tail = self.template.vocabulary.text(answer[-longest - 4 :])
        return any(stop in tail for stop in self.sampling.stop)

    def encode(self, trajectory: Trajectory, views: Sequence[Sequence[Message]] | None = None) -> Trajectory:
        """Ids for words that nobody sampled: the same trajectory with its `given` turns, and `final`, encoded.

        Turns that have ids keep them. `views` are what is seen before each turn and at the end, as a Context shows it
        (None: the whole conversation); turns beyond them are left out. A turn is fresh where its view does not extend
        the one before, or where the template says so.
        """
        views = _whole(trajectory) if views is None else views
        spoken: list[Completion] = []
        turns: list[Turn] = []
        before: Sequence[Message] = ()
        for turn, messages in zip(trajectory.turns, views, strict=False):
            if not _goes_on(turns, messages, before):
                spoken = []
            if not turn.completion.ids:
                turn = self._given(turn, messages, spoken)
            if turn.fresh:
                spoken = []
            spoken.append(turn.completion)
            turns.append(turn)
            before = messages
        trajectory = replace(trajectory, turns=tuple(turns))
        if trajectory.final is None or trajectory.final_ids or len(views) <= len(turns):
            return trajectory
        asked = Conversation(messages=tuple(views[-1]), spoken=tuple(spoken))
        ids, fresh = self.prompt(asked)
        if (turns and not _goes_on(turns, views[-1], before)) or (fresh and spoken):
            return trajectory
        shown = self.pictures(asked, ids, fresh=fresh)
        return replace(trajectory, final_ids=tuple(ids), final_pictures=shown)

    def _given(self, turn: Turn, messages: Sequence[Message], spoken: Sequence[Completion]) -> Turn:
        """`turn` with ids for its observation and its words."""
        asked = Conversation(messages=tuple(messages), spoken=tuple(spoken))
        prompt, fresh = self.prompt(asked)
        shown = self.pictures(asked, prompt, fresh=fresh)
        ids = self.template.answer(turn.completion.text)
        said = replace(turn.completion, prompt_ids=tuple(prompt), ids=tuple(ids), fresh=fresh, pictures=shown)
        return replace(turn, completion=said, fresh=fresh, kind="given")

    def score(
        self,
        ids: Tensor,
        attention: Tensor,
        *,
        positions: Tensor | None = None,
        temperature: float | None = None,
        mask: Tensor | None = None,
        media: Media | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, T) of `ids` at the sampling temperature; see `lmgym.policy.local.score`."""
        heat = (self.sampling.temperature if temperature is None else temperature) or 1.0
        return score(self.model, ids, attention, positions=positions, temperature=heat, mask=mask, media=media)

    def states(
        self, ids: Tensor, attention: Tensor, *, positions: Tensor | None = None, media: Media | None = None
    ) -> Tensor:
        """Last hidden states (B, T, H), for heads that read them."""
        return states(self.model, ids, attention, positions=positions, media=media)

    def update(self) -> None:
        """Say that the parameters changed: the version goes up, sessions compute their caches again."""
        self.version += 1
        self._decoder = None

    def save(self, folder: str | Path) -> None:
        """Write the model, tokenizer and template such that `hf:FOLDER` loads them."""
        try:
            with no_progress_bars():
                self.model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
            if self.gallery is not None:
                self.gallery.vision.save(Path(folder))
        except SafetensorError as error:  # a full disk is no OSError there
            raise OSError(f"cannot write the weights: {error}") from error

    def adjust_by(self, adjust: Adjust, *, beside: PreTrainedModel | None = None) -> None:
        """Pass all logits through `adjust` from here on.

        What `beside` makes of the same tokens joins the hidden states that it sees.
        """
        self.adjust, self._beside, self._decoder = adjust, beside, None

    @contextmanager
    def adjusted(self, adjust: Adjust, *, beside: PreTrainedModel | None = None) -> Iterator[None]:
        """The same for as long as the block lasts."""
        before = (self.adjust, self._beside, self._decoder)
        self.adjust_by(adjust, beside=beside)
        try:
            yield
        finally:
            self.adjust, self._beside, self._decoder = before

    def decoder(self, cache: KeyValues | None = None) -> Decoder:
        """A decoder of the present weights, over `cache`."""
        if self._decoder is None:
            self._decoder = self._prepared()
        return self._decoder(cache or KeyValues())

    def _prepared(self) -> Callable[[KeyValues], Decoder]:
        """The weights as the sampler takes them, cast to its precision."""
        vision = None if self.gallery is None else self.gallery.vision
        own = _sampling(self.model, self.dtype, vision)
        return own if self._beside is None else partial(SideBySide, own, _sampling(self._beside, self.dtype, vision))


@contextmanager
def no_progress_bars() -> Iterator[None]:
    """Reading and writing models without bars on the terminal."""
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


def _sampling(model: PreTrainedModel, dtype: torch.dtype, vision: Vision | None) -> Callable[[KeyValues], Decoder]:
    """A model as the sampler takes it."""
    with torch.no_grad():
        if known(model):
            return partial(FusedDecoder, network(model, dtype))
        same = dtype == next(model.parameters()).dtype
        cast = model if same else deepcopy(model).to(dtype)  # type: ignore[arg-type]
        return partial(ModelDecoder, cast, vision=vision)


def _finished(session: LocalSession, count: int) -> list[Completion]:
    """The completions of keys 0 to count - 1, when all are there."""
    done: dict[Hashable, Completion] = {}
    while len(session):
        done.update(session.step())
    return [done[i] for i in range(count)]


def _whole(trajectory: Trajectory) -> list[list[Message]]:
    """The whole conversation before each turn and at the end."""
    messages = [] if trajectory.prompt is None else [Message(role="system", text=trajectory.prompt)]
    views = []
    for turn in trajectory.turns:
        messages = [*messages, turn.observation]
        views.append(messages)
        messages = [*messages, Message(role="assistant", text=turn.completion.text)]
    return views if trajectory.final is None else [*views, [*messages, trajectory.final]]


def _goes_on(turns: Sequence[Turn], messages: Sequence[Message], before: Sequence[Message]) -> bool:
    """Whether `messages` extend those `before` the last turn and what it said."""
    said = Message(role="assistant", text=turns[-1].completion.text) if turns else None
    return extends(messages, before, said)


def _check_size(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Raises PolicyError for a tokenizer with ids that the model does not embed."""
    tokens, rows = len(tokenizer), len(head_of(model))
    if tokens > rows:
        raise PolicyError(f"The tokenizer has {tokens} tokens and the model {rows}: they do not belong together")


def _positions(model: PreTrainedModel) -> int:
    """Tokens that a model can take."""
    return int(getattr(model.config.get_text_config(), "max_position_embeddings", 1 << 30))


def _ends(model: PreTrainedModel) -> frozenset[int]:
    """Ids after which the model's own generation stops."""
    ends = model.generation_config.eos_token_id if model.generation_config is not None else None
    return frozenset() if ends is None else frozenset([ends] if isinstance(ends, int) else ends)
