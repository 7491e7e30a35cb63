"""Endpoints over HTTP: every dialect is sent the same way."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import httpx

from lmgym.errors import PolicyError
from lmgym.policy.endpoints.anthropic import AnthropicMessages
from lmgym.policy.endpoints.calls import MAX_REPLY_BYTES, Dialect, RawReply, RequestOptions, TransientError
from lmgym.policy.endpoints.chat import ChatCompletions, Pictures, parse_reply
from lmgym.policy.endpoints.secrets import HOSTS, key_variable
from lmgym.policy.endpoints.status import result_of


class HttpEndpoint:
    """A model behind an HTTP API, asked by one POST for each call."""

    def __init__(
        self, name: str, url: httpx.URL, *, dialect: Dialect, headers: Mapping[str, str], timeout: float
    ) -> None:
        """`name` holds no key; `timeout` is the limit in seconds for connecting and for each read and write."""
        self.name = name
        self.dialect = dialect
        self._url = url
        self._client = httpx.AsyncClient(
            # replies are read as they come: a compressed one could expand to any size
            headers={"Content-Type": "application/json", "Accept-Encoding": "identity", "User-Agent": "lmgym"}
            | dict(headers),
            timeout=timeout,
            limits=httpx.Limits(max_connections=1000, max_keepalive_connections=100),
        )

    async def exchange(self, request: Mapping[str, Any]) -> RawReply:
        """Send a request and return the parsed reply."""
        content = bytearray()
        try:
            async with self._client.stream("POST", self._url, content=json.dumps(request)) as response:
                encoding = response.headers.get("content-encoding", "identity")
                if encoding != "identity":
                    raise TransientError("broken", f"the reply is compressed ({encoding}) against the request's header")
                async for chunk in response.aiter_raw(1 << 16):
                    content += chunk
                    if len(content) > MAX_REPLY_BYTES:
                        raise TransientError("broken", f"the reply is longer than {MAX_REPLY_BYTES} bytes")
        except httpx.TimeoutException:
            raise TransientError("timeout", "the server took too long") from None
        except httpx.TransportError as error:
            raise TransientError("connection", f"the connection failed: {error}") from None
        if not response.is_success:
            text = " ".join(content.decode("utf-8", "replace").split())
            return result_of(response.status_code, response.headers, text)
        return parse_reply(bytes(content))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def chat_endpoint(address: str, *, options: RequestOptions, pictures: Pictures, timeout: float) -> HttpEndpoint:
    """Return the OpenAI-compatible endpoint `http(s)://host/v1#model`; `address` holds no key."""
    base, _, model = address.partition("#")
    if not model:
        raise PolicyError(f"{address} names no model: append it to the address, {base}#MODEL")
    variable = key_variable(base)
    key = os.environ.get(options.key_variable or variable) or "none"
    limit = "max_completion_tokens" if variable == HOSTS["api.openai.com"] else "max_tokens"
    return HttpEndpoint(
        address,
        _joined(base, "chat/completions"),
        dialect=ChatCompletions(model, options, pictures, limit=limit),
        headers={"Authorization": f"Bearer {key}"},
        timeout=timeout,
    )


def anthropic_endpoint(model: str, *, options: RequestOptions, pictures: Pictures, timeout: float) -> HttpEndpoint:
    """Return Anthropic's endpoint, or the one that ANTHROPIC_BASE_URL names."""
    key = os.environ.get(options.key_variable or HOSTS["api.anthropic.com"]) or "none"
    return HttpEndpoint(
        f"anthropic:{model}",
        _joined(os.environ.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com", "v1/messages"),
        dialect=AnthropicMessages(model, options, pictures),
        headers={"X-Api-Key": key, "Anthropic-Version": "2023-06-01"},
        timeout=timeout,
    )


def _joined(base: str, path: str) -> httpx.URL:
    """Return the URL of `path` below `base`, whose query stays."""
    try:
        url = httpx.URL(base)
        return url.copy_with(path=f"{url.path.rstrip('/')}/{path}")
    except httpx.InvalidURL as error:
        raise PolicyError(f"{base} is not a valid address: {error}") from error
