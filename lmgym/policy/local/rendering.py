"""Bounded rendering of chat templates: a template comes with a model and may loop for ever."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jinja2 import Template, nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import TemplateError
from transformers.utils import chat_template_utils

from lmgym.errors import PolicyError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MAX_STEPS = 500_000  # iterations and calls of one rendering; templates take a few for each message


class BoundedTemplate:
    """The chat template of a tokenizer, which raises PolicyError after MAX_STEPS iterations and calls."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> None:
        """`options` are variables of the template."""
        self._tokenizer = tokenizer
        self._variables = {**tokenizer.special_tokens_map, **options}
        self._compiled: dict[str, Template] = {}  # by source: a tokenizer may have another template for tools
        self._steps = 0

    def render(self, messages: list[dict[str, Any]], tools: list[Any] | None) -> str:
        """Render messages with a prompt for the next answer; raise TemplateError if the template rejects them."""
        try:
            source = str(self._tokenizer.get_chat_template(None, tools))
        except ValueError as error:
            raise PolicyError(f"the tokenizer has no default chat template: {error}") from error
        if source not in self._compiled:  # in the library's sandbox, with a step counted in each iteration and call
            try:
                environment: Any = chat_template_utils._compile_jinja_template(source).environment.overlay()
                environment.code_generator_class = _CountingGenerator
                environment.step = self._step
                self._compiled[source] = environment.from_string(source)
            except TemplateError as error:
                raise PolicyError(f"the chat template cannot be compiled: {error}") from error
        self._steps = 0
        try:
            return self._compiled[source].render(
                messages=messages, tools=tools, documents=None, add_generation_prompt=True, **self._variables
            )
        except RecursionError:
            raise PolicyError("the chat template recurses without end") from None

    def _step(self) -> bool:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise PolicyError(f"the chat template takes more than {MAX_STEPS} steps to render: it may never end")
        return True


class _CountingGenerator(CodeGenerator):
    """Jinja's code generator, with a call of `environment.step` in each loop, macro and block."""

    def visit_Template(self, node: nodes.Template, frame: Frame | None = None) -> None:
        parts: list[Any] = list(node.find_all((nodes.For, nodes.Macro, nodes.CallBlock, nodes.Block)))
        for part in parts:
            step = nodes.Call(nodes.EnvironmentAttribute("step"), [], [], None, None)
            part.body.insert(0, nodes.ExprStmt(step))
            if isinstance(part, nodes.For) and part.test is not None:
                part.test = nodes.And(step, part.test)
        node.set_environment(self.environment).set_lineno(1)
        super().visit_Template(node, frame)
