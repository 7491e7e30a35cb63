"""Any OpenAI-compatible endpoint, by the openai package; retries, pace and book are `remote.py`'s."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from lmgym.errors import MissingExtra, PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints import chat
from lmgym.policy.endpoints.calls import Raw, Said, Trouble
from lmgym.policy.endpoints.secrets import HOSTS, key_variable
from lmgym.policy.endpoints.status import result_of

ANSWER = 2048  # tokens of an answer, where nobody says


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How an endpoint is asked."""

    temperature: float | None = 1.0  # None leaves it to the server
    max_tokens: int = ANSWER
    more: Mapping[str, Any] = field(default_factory=dict)  # further members of the request; None takes one away
    key: str | None = None  # environment variable; None: by the host

    def body(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """A request with the further members."""
        return {name: value for name, value in {**fields, **self.more}.items() if value is not None}


class Endpoint:
    """`http(s)://host/v1#model`."""

    def __init__(self, address: str, *, asking: Asking, pictures: chat.Pictures, timeout: float) -> None:
        """`address` holds no key; `timeout` is of one exchange, in seconds."""
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra(f"{address} needs: pip install 'lmgym[eval]' ({error})") from error
        base, _, model = address.partition("#")
        if not model:
            raise PolicyError(f"{address} names no model: write it behind the address, {base}#MODEL")
        self.name = address
        self._model = model
        self._asking = asking
        self._pictures = pictures
        self._sdk = openai
        self._limit = "max_completion_tokens" if key_variable(base) == HOSTS["api.openai.com"] else "max_tokens"
        self._client = openai.AsyncOpenAI(
            base_url=base,
            api_key=os.environ.get(asking.key or key_variable(base)) or "none",
            max_retries=0,
            timeout=timeout,
            http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
        )

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request in full; pictures by their digests."""
        return self._asking.body(
            {
                "model": self._model,
                "messages": chat.messages_of(conversation),
                "temperature": self._asking.temperature,
                self._limit: conversation.max_tokens or self._asking.max_tokens,
                **chat.tools_of(conversation),
            }
        )

    async def send(self, body: Mapping[str, Any]) -> Raw:
        """Make one exchange."""
        sdk = self._sdk
        sent = {**body, "messages": chat.with_pictures(body["messages"], self._pictures)}
        try:  # all goes into extra_body: the package would look at every part of every message for what to rename
            reply = await self._client.chat.completions.with_raw_response.create(
                model=self._model, messages=(), extra_body=sent
            )
        except sdk.APIStatusError as error:
            return result_of(error.status_code, error.response.headers, shown(error.response.content))
        except sdk.APITimeoutError:
            raise Trouble("timeout", "the server took too long") from None
        except sdk.APIConnectionError as error:
            raise Trouble("connection", f"the connection failed: {error.__cause__ or error}") from None
        except sdk.OpenAIError as error:
            raise Trouble("broken", str(error)) from None
        return chat.parse(reply.http_response.content)

    def read(self, raw: Raw) -> Said:
        """What a reply says."""
        return chat.read(raw)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


def shown(content: bytes) -> str:
    """The body of an error as one line."""
    return " ".join(content.decode("utf-8", "replace").split())
