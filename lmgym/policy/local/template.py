"""Chat templates by delta: what was rendered is never rendered again, a turn appends only what is new.

Where a template edits the past (strips earlier thinking, say) the new rendering does not begin with the old one; then
everything is rendered anew and the turn is fresh.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jinja2.exceptions import TemplateError

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.local.vocabulary import MARKS, Vocabulary
from lmgym.policy.models.vision import Gallery
from lmgym.types import Message, Picture

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PROBE = ("first-probe", "second-probe", "third-probe")
PAST = 512  # renderings kept, one or two a conversation in flight
BLIND = "This policy reads text only; the conversation has images: use a policy that sees, such as tiny-vl"

Content = str | list[dict[str, str]]  # words, or parts: words and pictures


@dataclass(frozen=True)
class Guards:
    """What a rendering depends on beside the messages."""

    mark: str  # stands between the characters of control tokens that outside words spell
    tools: str | None  # JSON of the schemas


class ChatTemplate:
    """Messages to prompt ids, by the template that came with a tokenizer."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        *,
        options: Mapping[str, Any] | None = None,
        gallery: Gallery | None = None,
    ) -> None:
        """`options` go to the template, such as `enable_thinking`; `gallery` has the pictures that messages name."""
        if not getattr(tokenizer, "chat_template", None):
            name = tokenizer.name_or_path or "The tokenizer"
            raise PolicyError(f"{name} has no chat template: use an instruct model")
        self._tokenizer = tokenizer
        self._options = dict(options or {})
        self._gallery = gallery
        self._lists = False
        self._past: dict[tuple[tuple[Message, ...], Guards], str] = {}
        self.vocabulary = Vocabulary(tokenizer)
        self._lists = gallery is not None and not self._renders(("user",))  # takes contents as parts alone
        self._takes_system = self._renders(("system", "user"))
        self._takes_repeats = self._renders(("user", "user"))
        self._local = self._writes_locally()
        self.end = self._end_of_turn()  # the token that the template writes after an answer
        eos = tokenizer.eos_token_id
        self.stops = frozenset(token for token in (self.end, eos) if token is not None)

    def extend(self, conversation: Conversation) -> tuple[list[int], bool]:
        """Prompt ids that are new, and whether they are a full rendering."""
        messages = self._checked(conversation.messages)
        mark = self.vocabulary.mark([message.text for message in messages])
        guards = Guards(mark, self._tools(conversation.tools, mark))
        delta = self._delta(conversation, guards)
        text = self._render(messages, guards) if delta is None else delta
        images = _images(conversation, fresh=delta is None)
        if images:
            text = self._with_pictures(text, images)
        return self.vocabulary.rendered(text, mark), delta is None

    def pictures(self, conversation: Conversation, ids: Sequence[int], *, fresh: bool) -> tuple[Picture, ...]:
        """Where in `ids`, which `extend` made of a conversation, pictures stand."""
        images = _images(conversation, fresh=fresh)
        return self._gallery.located(images, ids) if images and self._gallery is not None else ()

    def answer(self, text: str) -> list[int]:
        """Ids of an answer nobody sampled, its end of turn included."""
        return self.vocabulary.words(text) + ([] if self.end is None else [self.end])

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of `messages` rendered from nothing."""
        return len(self.extend(Conversation(messages=tuple(messages)))[0])

    def _checked(self, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages, if there are any and the policy can take them."""
        if not messages:
            raise PolicyError("A conversation needs at least one message; got none")
        if self._gallery is None and any(message.images for message in messages):
            raise PolicyError(BLIND)
        return messages

    def _with_pictures(self, text: str, images: Sequence[str]) -> str:
        """A rendering with all places of `images`, for each of which the template wrote one."""
        assert self._gallery is not None, "pictures for a policy that takes none"
        written = self._gallery.vision.written
        first, *rest = text.split(written)
        if len(rest) != len(images):
            raise PolicyError(f"The chat template writes {len(rest)} times {written} for {len(images)} pictures")
        return first + "".join(self._gallery[image].words + after for image, after in zip(images, rest, strict=True))

    def _delta(self, conversation: Conversation, guards: Guards) -> str | None:
        """What the template writes after the last answer; None where it does not leave the past as it was."""
        last = _last_spoken(conversation)
        if last is None:
            return None
        messages = tuple(map(_stripped, conversation.messages))  # many templates trim answers; that is no edit
        if self._local and guards.tools is None and last > 0 and messages[last - 1].role == "user":
            messages, last = messages[last - 1 :], 1
        added = self._added(messages, last, guards)
        return None if added is None else self._after_stop(added, conversation.spoken[-1].ids)

    def _added(self, messages: tuple[Message, ...], last: int, guards: Guards) -> str | None:
        """What is written after the words of message `last`; None where the rendering of the past has changed."""
        asked = self._rendered(messages[:last], guards)
        now = self._rendered(messages, guards)
        if not now.startswith(asked):
            return None
        words, rest = self.vocabulary.guard(messages[last].text, guards.mark, own=True), now[len(asked) :]
        rest = rest if rest.startswith(words) else rest.lstrip()  # a space after the prompt for it is no edit either
        return rest[len(words) :] if rest.startswith(words) else None

    def _writes_locally(self) -> bool:
        """Whether what a turn adds depends on that turn alone: then no turn needs the whole past rendered.

        Found out on histories with a system prompt, thinking, an empty answer and line ends.
        """
        guards = Guards(MARKS[0], None)
        past = [Message(role="system", text="rules")]
        for answer in ("one", "<think>\nwhy\n</think>\n\ntwo", "", "three\n", "<think>because</think>four"):
            past += [Message(role="user", text="asked"), _stripped(Message(role="assistant", text=answer))]
            for after in (1, 2):
                messages = (*past, *[Message(role="user", text="next")] * after)
                turn = self._added(messages[len(past) - 2 :], 1, guards)
                wholes = [self._added(messages[start:], len(past) - 1 - start, guards) for start in (0, 1)]
                if turn is None or wholes != [turn, turn]:
                    return False
        return True

    def _after_stop(self, delta: str, ids: Sequence[int]) -> str:
        """`delta` less the end of turn that the policy sampled itself."""
        if not ids or ids[-1] not in self.stops:
            return delta
        space, stop, rest = delta.partition(self.vocabulary.name(ids[-1]))
        return rest if stop and not space.strip() else delta

    def _rendered(self, messages: tuple[Message, ...], guards: Guards) -> str:
        """The same as `_render`, remembered for the turn that goes on from there."""
        text = self._past.get((messages, guards))
        if text is None:
            text = self._past[messages, guards] = self._render(messages, guards)
            if len(self._past) > PAST:
                del self._past[next(iter(self._past))]
        return text

    def _render(self, messages: Sequence[Message], guards: Guards) -> str:
        """The conversation with a prompt for the next answer, outside words guarded."""
        guarded: list[dict[str, Any]] = [{"role": m.role, "content": self._content(m, guards)} for m in messages]
        if not self._takes_system:
            guarded = _fold_system(guarded)
        if not (self._takes_system and self._takes_repeats):
            guarded = _join_repeats(guarded)
        return self._apply(guarded, tools=None if guards.tools is None else json.loads(guards.tools))

    def _content(self, message: Message, guards: Guards) -> Content:
        """What a message says, guarded, and its pictures after it."""
        words = self.vocabulary.guard(message.text, guards.mark, own=message.role == "assistant")
        if not message.images:
            return words
        return [{"type": "text", "text": words}, *({"type": "image"} for _ in message.images)]

    def _apply(self, messages: list[dict[str, Any]], *, tools: list[Any] | None = None) -> str:
        """What the template writes; raises PolicyError where it refuses."""
        if self._lists:
            messages = [message | {"content": _parts(message["content"])} for message in messages]
        settings = {"tokenize": False, "add_generation_prompt": True, **self._options}
        try:
            return str(self._tokenizer.apply_chat_template(messages, tools=tools, **settings))
        except TemplateError as error:
            roles = ", ".join(message["role"] for message in messages)
            raise PolicyError(f"The chat template refuses the roles [{roles}]: {error}") from error

    def _tools(self, tools: Sequence[Mapping[str, Any]], mark: str) -> str | None:
        """Guarded JSON of the schemas."""
        if not tools:
            return None
        return self.vocabulary.guard(json.dumps([dict(tool) for tool in tools], ensure_ascii=False), mark, own=False)

    def _renders(self, roles: Sequence[str]) -> bool:
        """Whether the template takes these roles in order and shows what each of them says."""
        messages = [{"role": role, "content": text} for role, text in zip(roles, PROBE, strict=False)]
        try:
            text = self._apply(messages)
        except PolicyError:
            return False
        return all(message["content"] in text for message in messages)

    def _end_of_turn(self) -> int | None:
        """The first control token that the template writes after an answer; the tokenizer's own end if none."""
        roles = ("user", "assistant", "user")
        text = self._apply([{"role": role, "content": words} for role, words in zip(roles, PROBE, strict=True)])
        tail = text.partition(PROBE[1])[2].partition(PROBE[2])[0]
        control = self.vocabulary.control_ids
        found = [token for token in self.vocabulary.rendered(tail, MARKS[0]) if token in control]
        return found[0] if found else self._tokenizer.eos_token_id


def _stripped(message: Message) -> Message:
    """An answer without the white space around it; other messages as they are."""
    words = message.text.strip()
    return message if message.role != "assistant" or words == message.text else replace(message, text=words)


def _last_spoken(conversation: Conversation) -> int | None:
    """Index of the last answer, if the answers in the messages are the spoken ones, word for word, and have ids."""
    spoken = conversation.spoken
    if not spoken:
        return None
    at = [i for i, message in enumerate(conversation.messages) if message.role == "assistant"][-len(spoken) :]
    if len(at) < len(spoken) or not all(said.ids for said in spoken):
        return None
    same = all(conversation.messages[i].text == said.text for i, said in zip(at, spoken, strict=True))
    return at[-1] if same else None


def _images(conversation: Conversation, *, fresh: bool) -> list[str]:
    """Digests of the pictures that a rendering of a conversation shows: all, or those after the last answer."""
    last = None if fresh else _last_spoken(conversation)
    return [image for message in conversation.messages[0 if last is None else last + 1 :] for image in message.images]


def _fold_system(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with system messages written as the user's."""
    return [message | {"role": "user"} if message["role"] == "system" else message for message in messages]


def _join_repeats(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same with neighbours of one role joined by an empty line."""
    joined: list[dict[str, Any]] = []
    for message in messages:
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = message | {"content": _together(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def _together(first: Content, second: Content) -> Content:
    """Two contents as one, an empty line between them."""
    if isinstance(first, str) and isinstance(second, str):
        return first + "\n\n" + second
    return [*_parts(first), {"type": "text", "text": "\n\n"}, *_parts(second)]


def _parts(content: Content) -> list[dict[str, str]]:
    """A content as parts."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
