"""The world of one task: the databases of agent and user with their tools, kept in step with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lmgym.backends.user.tools import ToolError
from lmgym.tasks.tau2.airline import AirlineTools, airline_data
from lmgym.tasks.tau2.mock import MockTools, MockUserTools, mock_data
from lmgym.tasks.tau2.phone import phone_data
from lmgym.tasks.tau2.phone_tools import PhoneTools
from lmgym.tasks.tau2.retail import RetailTools, retail_data
from lmgym.tasks.tau2.telecom import TelecomTools, telecom_data
from lmgym.tasks.tau2.toolkit import Data, Toolkit, result_text

Requestor = Literal["assistant", "user"]
DOMAINS = ("retail", "airline", "telecom", "mock")
BROKEN = (ToolError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError)  # of unchecked arguments


class Tau2World:
    """Agent's and user's toolkits over fresh databases; `solo` gives the user's tools to the agent."""

    def __init__(self, domain: str, data: Data, user_data: Data | None, *, solo: bool = False) -> None:
        self.solo = solo
        self.user: Toolkit | None = None
        self.agent: Toolkit
        if domain == "retail":
            self.agent = RetailTools(retail_data(data))
        elif domain == "airline":
            self.agent = AirlineTools(airline_data(data))
        elif domain == "mock":
            self.agent = MockTools(mock_data(data))
            self.user = MockUserTools(user_data or {"notifications": {}})
        else:
            self.agent, self.user = TelecomTools(telecom_data(data)), PhoneTools(phone_data(user_data or {}))

    def schemas(self, requestor: Requestor) -> list[dict[str, Any]]:
        """Return the schemas of the tools that this side may call."""
        kits = self._kits(requestor)
        return [dict(tool.schema) for kit in kits for tool in kit.tools.values()]

    def call(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, without bringing the databases in step. Raises ToolError."""
        kits = self._kits(requestor)
        kit = next((kit for kit in kits if name in kit.tools), None)
        if kit is None:
            names = ", ".join(name for kit in kits for name in kit.tools)
            raise ToolError(f"Tool '{name[:80]}' not found. The tools are {names or 'none'}")
        return kit.call(name, arguments)

    def respond(self, requestor: Requestor, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Call a tool and bring the databases in step; return the text of the result and whether it is an error."""
        try:
            result = self.call(requestor, name, arguments)
            self.sync()
        except ToolError as error:
            return f"Error: {error}", True
        return result_text(result), False

    def run(self, call: Mapping[str, Any]) -> Any:
        """Run a function call of a task: {"env_type", "func_name", "arguments"}."""
        kit = self.user if call["env_type"] == "user" else self.agent
        if kit is None:
            raise ToolError(f"this domain has no tools of the user; the task calls {call['func_name']!r}")
        result = kit.run(call["func_name"], call["arguments"])
        self.sync()
        return result

    def holds(self, assertion: Mapping[str, Any]) -> bool:
        """Return True if an assertion on the state holds; one that cannot be evaluated does not."""
        try:
            return bool(self.run(assertion) == assertion.get("assert_value", True))
        except BROKEN:
            return False

    def initialise(self, state: Mapping[str, Any]) -> None:
        """Apply the data and actions of a task's initial state."""
        data = state.get("initialization_data") or {}
        self.agent.update(data.get("agent_data") or {})
        if self.user is not None:
            self.user.update(data.get("user_data") or {})
        for action in state.get("initialization_actions") or ():
            self.run(action)
        self.sync()

    def replay_gold(self, actions: Sequence[Mapping[str, Any]]) -> None:
        """Play gold actions; those that fail change nothing. As in tau2-bench, databases are not brought in step."""
        for action in actions:
            try:
                self.call(action.get("requestor") or "assistant", action["name"], action["arguments"])
            except BROKEN:
                continue

    def canonical(self) -> tuple[str, str]:
        """Return both databases as text."""
        return self.agent.canonical(), "" if self.user is None else self.user.canonical()

    def sync(self) -> None:
        """Bring the phone in step with the line, and bills with payments."""
        agent, user = self.agent, self.user
        if not isinstance(agent, TelecomTools) or not isinstance(user, PhoneTools):
            return
        around = user.surroundings
        if around["phone_number"] is None:
            return
        line = agent.row("lines", around["phone_number"], field="phone_number", name="phone number")
        limit = agent.row("plans", line["plan_id"])["data_limit_gb"] + line["data_refueling_gb"]
        around["line_active"] = line["status"] == "Active"
        around["roaming_allowed"] = line["roaming_enabled"]
        around["mobile_data_usage_exceeded"] = line["data_used_gb"] >= limit
        request = around["payment_request"]
        if request is not None and request["paid"]:
            agent.row("bills", request["bill_id"])["status"] = "Paid"
            around["payment_request"] = None
        if around["payment_request"] is None:
            bills = agent.awaiting_payment(agent.get_customer_by_phone(around["phone_number"]))
            if bills:
                due = {"bill_id": bills[0]["bill_id"], "amount_due": bills[0]["total_due"]}
                around["payment_request"] = {**due, "paid": False}

    def _kits(self, requestor: Requestor) -> list[Toolkit]:
        if requestor == "user":
            return [] if self.solo or self.user is None else [self.user]
        return [self.agent, self.user] if self.solo and self.user is not None else [self.agent]
