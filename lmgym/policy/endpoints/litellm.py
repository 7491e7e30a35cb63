"""`litellm:PROVIDER/MODEL`: every model that the litellm package reaches, in the chat-completions dialect."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lmgym.errors import MissingExtra
from lmgym.policy.endpoints.calls import RawReply, RequestOptions, TransientError
from lmgym.policy.endpoints.chat import ChatCompletions, Pictures
from lmgym.policy.endpoints.status import result_of


class LiteLlm:
    """A model by its litellm name; litellm takes the keys from the environment."""

    def __init__(self, model: str, *, options: RequestOptions, pictures: Pictures, timeout: float) -> None:
        """`timeout` is the limit of one exchange in seconds."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # lmgym has its own prices: fetch none
        try:
            import litellm
            import openai
        except ModuleNotFoundError as error:
            raise MissingExtra(f"litellm:{model} needs: pip install 'lmgym[litellm]' ({error})") from error
        self.name = f"litellm:{model}"
        self.dialect = ChatCompletions(model, options, pictures)
        key = {"api_key": os.environ.get(options.key_variable)} if options.key_variable else {}
        self._settings = {**key, "timeout": timeout, "num_retries": 0, "max_retries": 0}
        self._errors = openai  # litellm derives its errors from openai's
        self._complete = litellm.acompletion
        litellm.suppress_debug_info = True
        litellm.telemetry = False

    async def exchange(self, request: Mapping[str, Any]) -> RawReply:
        """Send a request and return the reply."""
        errors = self._errors
        try:
            reply = await self._complete(**request, **self._settings)
        except errors.APITimeoutError:
            raise TransientError("timeout", "the server took too long") from None
        except errors.APIConnectionError as error:
            raise TransientError("connection", f"the connection failed: {error}") from None
        except errors.APIStatusError as error:
            headers = error.response.headers if error.response is not None else {}
            return result_of(error.status_code, headers, str(error))
        except errors.OpenAIError as error:
            raise TransientError("broken", str(error)) from None
        raw: RawReply = reply.model_dump(mode="json")
        return raw

    async def close(self) -> None:
        """Do nothing: litellm keeps the connections itself."""
