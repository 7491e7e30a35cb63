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
from torch.nn.utils.rnn import pad_sequence

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, extends, tools_by_turn
from lmgym.policy.local.decoder import Decoder, FusedDecoder, PairedDecoder
from lmgym.policy.local.forward import Network, head_of, is_quantised, is_supported, network
from lmgym.policy.local.kv_cache import KVCache
from lmgym.policy.local.lora import adapted, save_adapter
from lmgym.policy.local.model_decoder import ModelDecoder
from lmgym.policy.local.sampling import Adjust, Sampling
from lmgym.policy.local.score import score, states
from lmgym.policy.local.session import LocalSession
from lmgym.policy.local.template import ChatTemplate
from lmgym.policy.models.progress import no_progress_bars
from lmgym.policy.models.vision import Gallery, Media, Vision
from lmgym.types import Completion, Message, Picture, Trajectory, Turn

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


class LocalPolicy:
    """A local language model that samples in batches and scores with gradients.

    A learner calls `hold_in_fp32`, changes the model's own parameters and then calls `update`. `dtype` is the precision
    of sampling, by default the parameters' own; scoring uses the parameters as they are.
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
        options: Mapping[str, Any] | None = None,
        vision: Vision | None = None,
    ) -> None:
        """`context` limits the tokens of a segment, `options` go to the chat template, `vision` prepares pictures."""
        self.model = model.to(device).eval()  # type: ignore[arg-type]
        self.tokenizer = tokenizer
        self.name = name
        self.version = 0
        self.sampling = sampling or Sampling()
        self.adjust: Adjust | None = None
        self.dtype = dtype or next(model.parameters()).dtype
        self.gallery = None if vision is None else Gallery(vision)
        self.template = ChatTemplate(tokenizer, options=options, gallery=self.gallery)
        ends = model.generation_config.eos_token_id if model.generation_config is not None else None
        own = [] if ends is None else [ends] if isinstance(ends, int) else ends
        self.stops = self.template.stops.union(own)  # the model's own generation stops at the latter
        longest = int(getattr(model.config.get_text_config(), "max_position_embeddings", 1 << 30))
        self.context = min(context or longest, longest)
        tokens, rows = len(tokenizer), len(head_of(model))
        if tokens > rows:
            raise PolicyError(f"the tokenizer has {tokens} tokens and the model {rows}: they do not belong together")
        self._decoder: Callable[[KVCache], Decoder] | None = None  # with the current weights
        self._network: Network | None = None  # of sampling on a GPU, whose graphs need the tensors in place
        self._second: PreTrainedModel | None = None  # a second model, whose states `adjust` reads

    @property
    def device(self) -> torch.device:
        """Device of the model."""
        return torch.device(self.model.device)

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Look up pictures in `pictures`, a mapping of digests to PNGs, from now on; an engine calls this itself."""
        if self.gallery is not None:
            self.gallery.pictures = pictures

    @cached_property
    def tokens(self) -> str:
        """Digest of tokenizer, template and vision settings; episodes with the same digest have ids of this policy."""
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
        *,
        noise: Sequence[int] = (0,),
        numbers: Sequence[int] | None = None,
        pictures: Sequence[tuple[Picture, ...]] | None = None,
    ) -> list[Completion]:
        """Answer each prefix of ids, without an environment.

        The noise of an answer depends on `noise` and the number of its prefix (default: its index).
        """
        session = self.session()
        for i, (number, prefix) in enumerate(zip(numbers or range(len(prefixes)), prefixes, strict=True)):
            located = pictures[i] if pictures else ()
            session.put_ids(i, (), prefix, fresh=True, noise=(*noise, number, 0), pictures=located)
        return _finished(session, len(prefixes))

    def session(self) -> LocalSession:
        """Return a new session with its own cache."""
        return LocalSession(self)

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in a full rendering of `messages`."""
        return self.template.count(messages)

    def prompt(self, conversation: Conversation) -> tuple[list[int], bool]:
        """Return the new ids of a conversation, and True if they render all of it."""
        return self.template.extend(conversation)

    def pictures(self, conversation: Conversation, prompt: Sequence[int], *, fresh: bool) -> tuple[Picture, ...]:
        """Locate the pictures in `prompt`, which `prompt()` made of a conversation."""
        return self.template.pictures(conversation, prompt, fresh=fresh)

    def text(self, answer: Sequence[int]) -> str:
        """Decode a sampled answer, up to the end of the first stop string."""
        words = self.template.vocabulary.text(answer[:-1] if answer and answer[-1] in self.stops else answer)
        ends = [words.find(stop) + len(stop) for stop in self.sampling.stop if stop in words]
        return words[: min(ends)] if ends else words

    def stopped(self, answer: Sequence[int]) -> bool:
        """Return True if a stop string occurs in the last tokens of an answer."""
        longest = max((len(stop.encode()) for stop in self.sampling.stop), default=0)  # a token is a byte or more
        tail = self.template.vocabulary.text(answer[-longest - 4 :])
        return any(stop in tail for stop in self.sampling.stop)

    def encode(self, trajectory: Trajectory, views: Sequence[Sequence[Message]] | None = None) -> Trajectory:
        """Return a trajectory with ids for its turns that were not sampled, of kind "given", and for `final`.

        Turns that have ids keep them. `views` are the messages before each turn and at the end, as a Context shows them
        (default: the whole conversation); turns beyond them are left out. A turn is fresh if its view does not extend
        the one before, or if the template edits the past.
        """
        views = _whole(trajectory) if views is None else views
        spoken: list[Completion] = []
        turns: list[Turn] = []
        before: Sequence[Message] = ()
        tools = tools_by_turn(trajectory.turns)
        for number, (turn, messages) in enumerate(zip(trajectory.turns, views, strict=False)):
            if not _continues(turns, messages, before) or tools[number] != tools[number - 1]:
                spoken = []
            if not turn.completion.ids:
                conversation = Conversation(messages=tuple(messages), spoken=tuple(spoken), tools=tools[number])
                prompt, fresh = self.prompt(conversation)
                completion = replace(
                    turn.completion,
                    prompt_ids=tuple(prompt),
                    ids=tuple(self.template.answer(turn.completion.text, prompt)),
                    fresh=fresh,
                    pictures=self.pictures(conversation, prompt, fresh=fresh),
                )
                turn = replace(turn, completion=completion, fresh=fresh, kind="given")
            if turn.fresh:
                spoken = []
            spoken.append(turn.completion)
            turns.append(turn)
            before = messages
        trajectory = replace(trajectory, turns=tuple(turns))
        if trajectory.final is None or trajectory.final_ids or len(views) <= len(turns):
            return trajectory
        offered = tools[-1] if tools else ()
        last = Conversation(messages=tuple(views[-1]), spoken=tuple(spoken), tools=offered)
        ids, fresh = self.prompt(last)
        if (turns and not _continues(turns, views[-1], before)) or (fresh and spoken):
            return trajectory
        pictures = self.pictures(last, ids, fresh=fresh)
        return replace(trajectory, final_ids=tuple(ids), final_pictures=pictures)

    def score(
        self,
        ids: Tensor,
        attention: Tensor,
        *,
        temperature: float | None = None,
        mask: Tensor | None = None,
        media: Media | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Return log-probs and entropies (B, T) of `ids` at the sampling temperature; see the function `score`."""
        temperature = (self.sampling.temperature if temperature is None else temperature) or 1.0
        return score(self.model, ids, attention, temperature=temperature, mask=mask, media=media)

    def answer_logprobs(self, conversations: Sequence[Conversation], answers: Sequence[str]) -> list[float]:
        """Return the log-probability (nats) of one answer, its end included, to each conversation.

        It is that of the answer's usual tokens at the sampling temperature; top-k and top-p are not applied. It is
        minus infinity if the context has no room for the answer.
        """
        rows, masks, pictures, fit = [], [], [], []
        for number, (conversation, answer) in enumerate(zip(conversations, answers, strict=True)):
            prompt, fresh = self.prompt(conversation)
            row = [*prompt, *self.template.answer(answer, prompt)]
            if len(row) <= self.context:
                fit.append(number)
                rows.append(torch.tensor(row))
                masks.append(torch.arange(len(row)) >= len(prompt))
                pictures.append(self.pictures(conversation, prompt, fresh=fresh))
        totals = [float("-inf")] * len(answers)
        if not fit:
            return totals
        ids, mask = (pad_sequence(each, batch_first=True).to(self.device) for each in (rows, masks))
        lengths = torch.tensor([len(row) for row in rows], device=self.device)
        attention = torch.arange(ids.shape[1], device=self.device) < lengths[:, None]
        media = None if self.gallery is None else Media(tuple(pictures), self.gallery)
        with torch.no_grad():
            logprobs, _ = self.score(ids, attention, mask=mask, media=media)
        for number, total in zip(fit, logprobs.double().sum(1).tolist(), strict=True):
            totals[number] = total
        return totals

    def states(self, ids: Tensor, attention: Tensor, *, media: Media | None = None) -> Tensor:
        """Return the last hidden states (B, T, H)."""
        return states(self.model, ids, attention, media=media)

    def hold_in_fp32(self) -> None:
        """Hold the weights that are trained in fp32: 16 bits round small steps away. Sampling keeps its precision.

        Raise PolicyError for quantised weights.
        """
        if is_quantised(self.model) and not adapted(self.model):
            raise PolicyError(f"{self.name} has quantised weights, which cannot be trained: train adapters with --lora")
        for weight in self.model.parameters():
            if weight.requires_grad and weight.dtype.itemsize < torch.float32.itemsize:
                weight.data = weight.data.float()
        self._decoder = None

    def update(self) -> None:
        """Report changed parameters: increase the version, and let sessions compute their caches again."""
        self.version += 1
        self._decoder = None

    def save(self, folder: str | Path) -> None:
        """Write the model, tokenizer and template to a folder for `hf:FOLDER`."""
        try:
            with no_progress_bars():
                if adapted(self.model):
                    save_adapter(self.model, Path(folder))
                else:
                    self.model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
            if self.gallery is not None:
                self.gallery.vision.save(Path(folder))
        except SafetensorError as error:  # raised for a full disk
            raise OSError(f"cannot write the weights: {error}") from error

    def adjust_by(self, adjust: Adjust, *, second: PreTrainedModel | None = None) -> None:
        """Pass all logits through `adjust` from now on; its hidden states include those of a `second` model."""
        self.adjust, self._second, self._decoder = adjust, second, None

    @contextmanager
    def adjusted(self, adjust: Adjust, *, second: PreTrainedModel | None = None) -> Iterator[None]:
        """Call `adjust_by` for the duration of the block."""
        before = (self.adjust, self._second, self._decoder)
        self.adjust_by(adjust, second=second)
        try:
            yield
        finally:
            self.adjust, self._second, self._decoder = before

    def decoder(self, cache: KVCache | None = None) -> Decoder:
        """Return a decoder with the current weights, cast to the precision of sampling, over `cache`."""
        if self._decoder is None:
            vision = None if self.gallery is None else self.gallery.vision
            if self.device.type == "cuda" and is_supported(self.model):
                self._decoder = partial(FusedDecoder, self._loaded_network())
            else:
                self._decoder = _decoder_of(self.model, self.dtype, vision)
            if self._second is not None:
                self._decoder = partial(PairedDecoder, self._decoder, _decoder_of(self._second, self.dtype, vision))
        return self._decoder(cache or KVCache())

    @torch.inference_mode(mode=False)  # its tensors are written in both modes
    @torch.no_grad()
    def _loaded_network(self) -> Network:
        """Return the network of sampling with the current weights, always the same object."""
        current = network(self.model, self.dtype)
        if self._network is None:
            self._network = current
        else:
            self._network.load(current)
        return self._network


def _decoder_of(model: PreTrainedModel, dtype: torch.dtype, vision: Vision | None) -> Callable[[KVCache], Decoder]:
    """Return a function from a cache to the decoder of a model."""
    with torch.no_grad():
        if is_supported(model):
            return partial(FusedDecoder, network(model, dtype))
        same = dtype == next(model.parameters()).dtype or is_quantised(model)
        return partial(ModelDecoder, model if same else _cast(model, dtype), vision=vision)


def _cast(model: PreTrainedModel, dtype: torch.dtype) -> PreTrainedModel:
    """Return a copy of a model with its weights in `dtype`."""
    cast: PreTrainedModel = deepcopy(model).to(dtype)  # type: ignore[arg-type]
    saved = model.state_dict().keys()
    for name, buffer in model.named_buffers():
        if name not in saved:  # rotary frequencies: in 16 bits, far positions turn by wrong angles
            cast.get_buffer(name).data = buffer.clone()
    return cast


def _finished(session: LocalSession, count: int) -> list[Completion]:
    """Run a session to its end and return the completions of keys 0 to count - 1."""
    done: dict[Hashable, Completion] = {}
    while len(session):
        done.update(session.step())
    return [done[i] for i in range(count)]


def _whole(trajectory: Trajectory) -> list[list[Message]]:
    """Return the whole conversation before each turn and at the end."""
    messages = [] if trajectory.prompt is None else [Message(role="system", text=trajectory.prompt)]
    views = []
    for turn in trajectory.turns:
        messages = [*messages, turn.observation]
        views.append(messages)
        messages = [*messages, Message(role="assistant", text=turn.completion.text)]
    return views if trajectory.final is None else [*views, [*messages, trajectory.final]]


def _continues(turns: Sequence[Turn], messages: Sequence[Message], before: Sequence[Message]) -> bool:
    """Return True if `messages` extend those `before` the last turn and its answer."""
    answer = Message(role="assistant", text=turns[-1].completion.text) if turns else None
    return extends(messages, before, answer)
