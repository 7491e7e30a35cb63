"""`litellm:PROVIDER/MODEL`: whatever the litellm package reaches, in the chat-completions dialect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lmgym.errors import MissingExtra
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints import chat
from lmgym.policy.endpoints.calls import Raw, Said, Trouble
from lmgym.policy.endpoints.openai import Asking
from lmgym.policy.endpoints.status import result_of


class LiteLlm:
    """A model by the name that litellm gives it; keys are where litellm looks for them, in the environment."""

    def __init__(self, model: str, *, asking: Asking, pictures: chat.Pictures, timeout: float) -> None:
        """`timeout` is of one exchange, in seconds."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # prices are ours: it need not fetch any
        try:
            import litellm
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra(f"litellm:{model} needs: pip install 'lmgym[litellm]' ({error})") from error
        self.name = f"litellm:{model}"
        self._model = model
        self._asking = asking
        self._pictures = pictures
        self._timeout = timeout
        self._sdk = openai  # its errors are derived from these
        self._complete = litellm.acompletion
        litellm.suppress_debug_info = True
        litellm.telemetry = False

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request in full; pictures by their digests."""
        return self._asking.body(
            {
                "model": self._model,
                "messages": chat.messages_of(conversation),
                "temperature": self._asking.temperature,
                "max_tokens": conversation.max_tokens or self._asking.max_tokens,
                **chat.tools_of(conversation),
            }
        )

    async def send(self, body: Mapping[str, Any]) -> Raw:
        """Make one exchange."""
        sdk = self._sdk
        messages = chat.with_pictures(body["messages"], self._pictures)
        more = {"api_key": os.environ.get(self._asking.key)} if self._asking.key else {}
        try:
            reply = await self._complete(
                **{**body, "messages": messages}, **more, timeout=self._timeout, num_retries=0, max_retries=0
            )
        except sdk.APITimeoutError:
            raise Trouble("timeout", "the server took too long") from None
        except sdk.APIConnectionError as error:
            raise Trouble("connection", f"the connection failed: {error}") from None
        except sdk.APIStatusError as error:
            headers = error.response.headers if error.response is not None else {}
            return result_of(error.status_code, headers, str(error))
        except sdk.OpenAIError as error:
            raise Trouble("broken", str(error)) from None
        raw: Raw = reply.model_dump(mode="json")
        return raw

    def read(self, raw: Raw) -> Said:
        """What a reply says."""
        return chat.read(raw)

    async def close(self) -> None:
        """Let connections go: litellm keeps them itself."""
