"""Chat templates by delta: a turn renders and encodes only what is new.

If a template edits the past (strips earlier thinking, say), the new rendering does not begin with the old one; then
everything is rendered again and the turn is fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateError

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, with_tools_in_prompt
from lmgym.policy.local.rendering import BoundedTemplate
from lmgym.policy.local.vocabulary import MARKS, Vocabulary
from lmgym.policy.models.vision import Gallery
from lmgym.policy.tools import CLOSE, OPEN, split_thinking, wrapped
from lmgym.types import Completion, Message, Picture

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE = ("first-probe", "second-probe", "third-probe")
TAIL = 16  # tokens at the end of a prompt that hold `<think>` and a line end, spelt letter by letter
CACHED = 512  # renderings kept, one or two for each conversation in flight
TEXT_ONLY = "this policy reads text only, but the conversation has images; use a policy with vision, such as tiny-vl"

Content = str | list[dict[str, str]]  # text, or parts of text and pictures


@dataclass(frozen=True)
class RenderKey:
    """All that a rendering depends on beside the messages."""

    mark: str  # stands between the characters of control tokens that messages spell
    tools: str | None  # JSON of the schemas


class ChatTemplate:
    """Messages to prompt ids, by the chat template of a tokenizer."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        options: Mapping[str, Any] | None = None,
        gallery: Gallery | None = None,
    ) -> None:
        """`options` are variables of the template, such as `enable_thinking`; `gallery` has the messages' pictures."""
        if not getattr(tokenizer, "chat_template", None):
            name = tokenizer.name_or_path or "The tokenizer"
            raise PolicyError(f"{name} has no chat template: use an instruct model")
        self._tokenizer = tokenizer
        self._template = BoundedTemplate(tokenizer, options or {})
        self._gallery = gallery
        self._renderings: dict[tuple[tuple[Message, ...], RenderKey], str] = {}
        self.vocabulary = Vocabulary(tokenizer)
        self._takes_parts = False
        self._takes_parts = gallery is not None and not self._accepts(("user",))  # no plain strings
        self._takes_system = self._accepts(("system", "user"))
        self._takes_repeats = self._accepts(("user", "user"))
        self._is_local = self._renders_locally()
        self.end = self._end_of_turn()  # the token that the template writes after an answer
        eos = tokenizer.eos_token_id
        self.stops = frozenset(token for token in (self.end, eos) if token is not None)

    def extend(self, conversation: Conversation) -> tuple[list[int], bool]:
        """Return the new prompt ids, and True if they are a full rendering."""
        if not conversation.messages:
            raise PolicyError("a conversation needs at least one message")
        if conversation.tools and not self.shows_tools:
            conversation = with_tools_in_prompt(conversation)
        messages = conversation.messages
        if self._gallery is None and any(message.images for message in messages):
            raise PolicyError(TEXT_ONLY)
        mark = self.vocabulary.mark([message.text for message in messages])
        tools = None
        if conversation.tools:
            schemas = json.dumps(wrapped(conversation.tools), ensure_ascii=False)
            tools = self.vocabulary.guard(schemas, mark, own=False)
        key = RenderKey(mark, tools)
        delta = self._delta(conversation, key)
        text = self._render(messages, key) if delta is None else delta
        images = _images(conversation, fresh=delta is None)
        if images:  # what the template wrote for each becomes all its placeholders
            assert self._gallery is not None, "pictures for a policy without vision"
            marker = self._gallery.vision.template_text
            first, *rest = text.split(marker)
            if len(rest) != len(images):
                raise PolicyError(f"the chat template wrote {marker} {len(rest)} times for {len(images)} pictures")
            text = first + "".join(self._gallery[image].text + after for image, after in zip(images, rest, strict=True))
        return self.vocabulary.rendered(text, mark), delta is None

    def pictures(self, conversation: Conversation, ids: Sequence[int], *, fresh: bool) -> tuple[Picture, ...]:
        """Locate the pictures in `ids`, which `extend` made of a conversation."""
        images = _images(conversation, fresh=fresh)
        return self._gallery.locate(images, ids) if images and self._gallery is not None else ()

    def answer(self, text: str, prompt: Sequence[int]) -> list[int]:
        """Return the ids of an answer that was not sampled, including its end of turn.

        It has no thinking: where the prompt opens it, the answer closes it first.
        """
        closing = self.vocabulary.rendered(f"{CLOSE}\n\n", "") if self.opens_thinking(prompt) else []
        return closing + self.vocabulary.words(text) + ([] if self.end is None else [self.end])

    def opens_thinking(self, prompt: Sequence[int]) -> bool:
        """Return True if a prompt ends in `<think>`: the template begins the answer's thinking."""
        return self.vocabulary.text(prompt[-TAIL:], special=True).rstrip().endswith(OPEN)

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of tokens in a full rendering of `messages`."""
        return len(self.extend(Conversation(messages=tuple(messages)))[0])

    @cached_property
    def shows_tools(self) -> bool:
        """True if the template writes the tools that it is given."""
        tools = wrapped([{"name": "probe", "description": PROBE[0], "parameters": {"type": "object"}}])
        messages = [{"role": "user", "content": PROBE[1]}]
        try:
            return self._apply(messages, tools=tools) != self._apply(messages)
        except PolicyError:
            return False

    def _delta(self, conversation: Conversation, key: RenderKey) -> str | None:
        """Return what the template writes after the last answer; None if it changes what was rendered before."""
        last = _last_spoken(conversation)
        if last is None:
            return None
        sampled = [*conversation.messages]
        local = self._is_local and key.tools is None and last > 0 and sampled[last - 1].role == "user"
        answers = [i for i in range(last + 1) if sampled[i].role == "assistant"]
        spoken = conversation.spoken[-1:] if local else conversation.spoken
        for i, completion in zip(answers[-len(spoken) :], spoken, strict=True):
            sampled[i] = self._with_thinking(sampled[i], completion)
        messages = tuple(map(_stripped, sampled))  # many templates trim answers; that is no edit
        if local:
            messages, last = messages[last - 1 :], 1
        added = self._added(messages, last, key)
        ids = conversation.spoken[-1].ids
        if added is None or not ids or ids[-1] not in self.stops:
            return added
        space, stop, rest = added.partition(self.vocabulary.name(ids[-1]))  # the policy sampled its end of turn itself
        return rest if stop and not space.strip() else added

    def _with_thinking(self, message: Message, completion: Completion) -> Message:
        """Return an answer with its thinking, which messages leave out, for the template to keep or to strip."""
        ids = completion.ids
        text = self.vocabulary.text(ids[:-1] if ids[-1] in self.stops else ids)
        if split_thinking(text, opened=self.opens_thinking(completion.prompt_ids))[1] == text:
            return message
        return replace(message, text=text if CLOSE in text else text + CLOSE)

    def _added(self, messages: tuple[Message, ...], last: int, key: RenderKey) -> str | None:
        """Return what is written after the words of message `last`; None if the rendering before it has changed."""
        before = self._cached_rendering(messages[:last], key)
        now = self._cached_rendering(messages, key)
        if not now.startswith(before):
            return None
        words, rest = self.vocabulary.guard(messages[last].text, key.mark, own=True), now[len(before) :]
        rest = rest if rest.startswith(words) else rest.lstrip()  # a space after the generation prompt is no edit
        return rest[len(words) :] if rest.startswith(words) else None

    def _renders_locally(self) -> bool:
        """Return True if what a turn adds depends on that turn alone, so that the past need not be rendered.

        Tested on histories with a system prompt, thinking, an empty answer and line ends.
        """
        key = RenderKey(MARKS[0], None)
        past = [Message(role="system", text="rules")]
        for answer in ("one", "<think>\nwhy\n</think>\n\ntwo", "", "three\n", "<think>because</think>four"):
            past += [Message(role="user", text="asked"), _stripped(Message(role="assistant", text=answer))]
            for after in (1, 2):
                messages = (*past, *[Message(role="user", text="next")] * after)
                turn = self._added(messages[len(past) - 2 :], 1, key)
                wholes = [self._added(messages[start:], len(past) - 1 - start, key) for start in (0, 1)]
                if turn is None or wholes != [turn, turn]:
                    return False
        return True

    def _cached_rendering(self, messages: tuple[Message, ...], key: RenderKey) -> str:
        """Return a rendering, cached for the turn that continues from it."""
        text = self._renderings.get((messages, key))
        if text is None:
            text = self._renderings[messages, key] = self._render(messages, key)
            if len(self._renderings) > CACHED:
                del self._renderings[next(iter(self._renderings))]
        return text

    def _render(self, messages: Sequence[Message], key: RenderKey) -> str:
        """Render guarded messages with a prompt for the next answer."""
        guarded: list[dict[str, Any]] = []
        for message in messages:
            role = "user" if message.role == "system" and not self._takes_system else message.role
            text = self.vocabulary.guard(message.text, key.mark, own=message.role == "assistant")
            pictures = [{"type": "image"} for _ in message.images]
            content = [{"type": "text", "text": text}, *pictures] if pictures else text
            guarded.append({"role": role, "content": content})
        if not (self._takes_system and self._takes_repeats):
            guarded = _join_repeats(guarded)
        return self._apply(guarded, tools=None if key.tools is None else json.loads(key.tools))

    def _apply(self, messages: list[dict[str, Any]], *, tools: list[Any] | None = None) -> str:
        """Render messages; raise PolicyError if the template rejects them."""
        if self._takes_parts:
            messages = [message | {"content": _parts(message["content"])} for message in messages]
        try:
            return self._template.render(messages, tools)
        except TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise PolicyError(f"the chat template rejects the roles [{roles}]: {error}") from error

    def _accepts(self, roles: Sequence[str]) -> bool:
        """Return True if the template takes messages of these roles and writes all of them."""
        messages = [{"role": role, "content": text} for role, text in zip(roles, PROBE, strict=False)]
        try:
            text = self._apply(messages)
        except PolicyError:
            return False
        return all(message["content"] in text for message in messages)

    def _end_of_turn(self) -> int | None:
        """Return the first control token that the template writes after an answer; the tokenizer's end if none."""
        roles = ("user", "assistant", "user")
        text = self._apply([{"role": role, "content": words} for role, words in zip(roles, PROBE, strict=True)])
        tail = text.partition(PROBE[1])[2].partition(PROBE[2])[0]
        control = self.vocabulary.control_ids
        tokens = [token for token in self.vocabulary.rendered(tail, MARKS[0]) if token in control]
        return tokens[0] if tokens else self._tokenizer.eos_token_id


def _stripped(message: Message) -> Message:
    """Strip white space around an answer; return other messages as they are."""
    words = message.text.strip()
    return message if message.role != "assistant" or words == message.text else replace(message, text=words)


def _last_spoken(conversation: Conversation) -> int | None:
    """Return the index of the last answer, if the answers in the messages are the spoken ones and have ids."""
    spoken = conversation.spoken
    if not spoken:
        return None
    at = [i for i, message in enumerate(conversation.messages) if message.role == "assistant"][-len(spoken) :]
    if len(at) < len(spoken) or not all(completion.ids for completion in spoken):
        return None
    same = all(conversation.messages[i].text == answer.text for i, answer in zip(at, spoken, strict=True))
    return at[-1] if same else None


def _images(conversation: Conversation, *, fresh: bool) -> list[str]:
    """Return the digests of the pictures in a rendering: all, or those after the last answer."""
    last = None if fresh else _last_spoken(conversation)
    return [image for message in conversation.messages[0 if last is None else last + 1 :] for image in message.images]


def _join_repeats(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring messages of one role, with an empty line between them."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if not joined or joined[-1]["role"] != message["role"]:
            joined.append(message)
            continue
        first, second = joined[-1]["content"], message["content"]
        if isinstance(first, str) and isinstance(second, str):
            content: Content = first + "\n\n" + second
        else:
            content = [*_parts(first), {"type": "text", "text": "\n\n"}, *_parts(second)]
        joined[-1] = message | {"content": content}
    return joined


def _parts(content: Content) -> list[dict[str, str]]:
    """Return a content as parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
