"""The telecom domain: thirteen tools of the agent, and functions with which tasks initialise and assert."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Annotated

from lmgym.backends.user.tools import ToolError, tool
from lmgym.tasks.tau2.toolkit import Data, Toolkit, with_defaults

TODAY = date(2025, 2, 25)
CustomerId = Annotated[str, "such as 'C1001'"]
LineId = Annotated[str, "such as 'L1001'"]
TABLES: Mapping[str, Data] = {  # defaults of the records
    "plans": {},
    "customers": {
        "account_status": "Pending Verification",
        "payment_methods": [],
        "line_ids": [],
        "bill_ids": [],
        "created_at": "2025-01-01",
        "last_extension_date": None,
        "goodwill_credit_used_this_year": 0.0,
    },
    "lines": {
        "status": "Pending Activation",
        "device_id": None,
        "data_used_gb": 0.0,
        "data_refueling_gb": 0.0,
        "roaming_enabled": False,
        **dict.fromkeys(("contract_end_date", "last_plan_change_date", "last_sim_replacement_date")),
        "suspension_start_date": None,
    },
    "bills": {"line_items": [], "status": "Draft"},
    "devices": {"imei": None, "activated": False, "activation_date": None, "last_esim_transfer_date": None},
}
MOMENTS = ("created_at", "activation_date", "last_esim_transfer_date")


def telecom_data(content: Data) -> Data:
    """Return a database as loaded from its file, records with all their fields, days and times as text."""
    return {
        table: [_plain(with_defaults(record, defaults)) for record in content.get(table, ())]
        for table, defaults in TABLES.items()
    }


def _plain(record: Data) -> Data:
    for name, value in record.items():
        if isinstance(value, date | datetime):
            record[name] = str(value)
        elif name in MOMENTS and isinstance(value, str):
            record[name] = value.replace("T", " ")
        elif isinstance(value, list):
            record[name] = [_plain(each) if isinstance(each, dict) else each for each in value]
    return record


class TelecomTools(Toolkit):
    """Tools over plans, customers, lines, bills and devices."""

    FUNCTIONS = (
        *("set_data_usage", "suspend_line_for_overdue_bill", "get_available_plan_ids"),
        *("assert_data_refueling_amount", "assert_line_status", "assert_overdue_bill_exists", "assert_no_overdue_bill"),
    )

    @tool
    def get_customer_by_phone(self, phone_number: Annotated[str, "any number of the customer"]) -> Data:
        """Find a customer by their primary number or the number of a line."""
        customers: list[Data] = self.data["customers"]
        for customer in customers:
            numbers = [self.row("lines", line_id)["phone_number"] for line_id in customer["line_ids"]]
            if phone_number in (customer["phone_number"], *numbers):
                return customer
        raise ToolError(f"Customer with phone number {phone_number} not found")

    @tool
    def get_customer_by_id(self, customer_id: CustomerId) -> Data:
        """Find a customer by id."""
        return self.row("customers", customer_id)

    @tool
    def get_customer_by_name(self, full_name: str, dob: Annotated[str, "date of birth, YYYY-MM-DD"]) -> list[Data]:
        """Find customers by name and date of birth."""
        return [
            customer
            for customer in self.data["customers"]
            if customer["full_name"].lower() == full_name.lower() and customer["date_of_birth"] == dob
        ]

    @tool
    def get_details_by_id(self, id: Annotated[str, "id of a customer, line, device, bill or plan"]) -> Data:
        """Return the record with this id."""
        tables = {"L": "lines", "D": "devices", "B": "bills", "C": "customers", "P": "plans"}
        if id[:1] not in tables:
            raise ToolError(f"Unknown ID format or type: {id}")
        return self.row(tables[id[0]], id)

    @tool
    def suspend_line(self, customer_id: CustomerId, line_id: LineId, reason: str) -> Data:
        """Suspend a line, for six months at most. A holding fee of $5 a month applies."""
        line = self._line(customer_id, line_id)
        if line["status"] != "Active":
            raise ToolError("Line must be active to suspend")
        line |= {"status": "Suspended", "suspension_start_date": str(TODAY)}
        return {"message": "Line suspended successfully. $5/month holding fee will apply.", "line": line}

    @tool
    def resume_line(self, customer_id: CustomerId, line_id: LineId) -> Data:
        """Resume a suspended line."""
        line = self._line(customer_id, line_id)
        if line["status"] not in ("Suspended", "Pending Activation"):
            raise ToolError("Line must be suspended to resume")
        line |= {"status": "Active", "suspension_start_date": None}
        return {"message": "Line resumed successfully", "line": line}

    @tool
    def get_bills_for_customer(
        self, customer_id: CustomerId, limit: Annotated[int, "number of bills at most"] = 12
    ) -> list[Data]:
        """Return a customer's bills, latest first."""
        bills = [self.row("bills", bill_id) for bill_id in self.get_customer_by_id(customer_id)["bill_ids"]]
        return sorted(bills, key=lambda bill: str(bill["issue_date"]), reverse=True)[:limit]

    @tool
    def send_payment_request(self, customer_id: CustomerId, bill_id: Annotated[str, "such as 'B1001321'"]) -> str:
        """Ask a customer to pay a bill; one request at a time."""
        customer = self.get_customer_by_id(customer_id)
        if self.awaiting_payment(customer):
            raise ToolError("A bill is already awaiting payment for this customer")
        if bill_id not in customer["bill_ids"]:
            raise ToolError(f"Bill {bill_id} not found for customer {customer_id}")
        bill = self.row("bills", bill_id)
        bill["status"] = "Awaiting Payment"
        return f"Payment request sent to the customer for bill {bill_id}"

    @tool
    def get_data_usage(self, customer_id: CustomerId, line_id: LineId) -> dict[str, str]:
        """Return the data used, the limit, the refuelled data and the last day of the cycle of a line."""
        line = self._line(customer_id, line_id)
        plan = self.row("plans", line["plan_id"])
        cycle_end = date(TODAY.year, TODAY.month % 12 + 1, 1) - timedelta(days=1)
        return {
            "line_id": line_id,
            "data_used_gb": str(line["data_used_gb"]),
            "data_limit_gb": str(plan["data_limit_gb"]),
            "data_refueling_gb": str(line["data_refueling_gb"]),
            "cycle_end_date": cycle_end.isoformat(),
        }

    @tool
    def enable_roaming(self, customer_id: CustomerId, line_id: LineId) -> str:
        """Enable international roaming on a line."""
        return self._set_roaming(customer_id, line_id, enabled=True)

    @tool
    def disable_roaming(self, customer_id: CustomerId, line_id: LineId) -> str:
        """Disable international roaming on a line."""
        return self._set_roaming(customer_id, line_id, enabled=False)

    @tool
    def transfer_to_human_agents(self, summary: Annotated[str, "summary of the user's issue"]) -> str:
        """Transfer the user to a human, if they ask for one or policy and tools cannot solve the issue."""
        return "Transfer successful"

    @tool
    def refuel_data(self, customer_id: CustomerId, line_id: LineId, gb_amount: float) -> dict[str, str]:
        """Add data to a line and charge it to the customer's next bill."""
        line = self._line(customer_id, line_id)
        if gb_amount <= 0:
            raise ToolError("Refuel amount must be positive")
        rate = self.row("plans", line["plan_id"])["data_refueling_price_per_gb"]
        charge = gb_amount * rate
        line["data_refueling_gb"] += gb_amount
        self._charge(customer_id, charge, f"Data refueling: {gb_amount} GB at ${rate}/GB")
        return {
            "message": f"Successfully added {gb_amount} GB of data for line {line_id} for ${charge:.2f}",
            "new_data_refueling_gb": str(line["data_refueling_gb"]),
            "charge": str(charge),
        }

    # Functions of tasks ----------------------------------------------------------------------------------------

    def get_available_plan_ids(self) -> list[str]:
        """Return the ids of all plans."""
        return [plan["plan_id"] for plan in self.data["plans"]]

    def set_data_usage(self, customer_id: str, line_id: str, data_used_gb: float) -> str:
        """Set the data that a line has used."""
        self._line(customer_id, line_id)["data_used_gb"] = float(data_used_gb)
        return f"Data usage set to {data_used_gb} GB for line {line_id}"

    def suspend_line_for_overdue_bill(
        self, customer_id: str, line_id: str, new_bill_id: str, contract_ended: bool
    ) -> str:
        """Suspend a line for a new bill over last month's plan that is overdue."""
        line = self.row("lines", line_id)
        if line["status"] != "Active":
            raise ToolError("Line must be active to suspend for unpaid bill")
        amount = self.row("plans", line["plan_id"])["price_per_month"]
        if amount <= 0:
            raise ToolError("Amount must be positive for overdue bill")
        customer = self.get_customer_by_id(customer_id)
        if any(self.row("bills", bill_id)["status"] == "Overdue" for bill_id in customer["bill_ids"]):
            raise ToolError("Customer already has an overdue bill")
        last = TODAY.replace(day=1) - timedelta(days=1)
        first = last.replace(day=1)
        bill = _bill(new_bill_id, customer_id, first, last, "Overdue")
        _add_item(bill, f"Charge for line {line_id}", amount)
        self.data["bills"].append(bill)
        customer["bill_ids"].append(new_bill_id)
        line |= {"status": "Suspended", "suspension_start_date": str(TODAY)}
        if contract_ended:
            line["contract_end_date"] = str(last)
        return f"Line {line_id} suspended for unpaid bill {new_bill_id}. Contract ended: {contract_ended}"

    def assert_data_refueling_amount(self, customer_id: str, line_id: str, expected_amount: float) -> bool:
        """Return True if so many gigabytes were refuelled."""
        return bool(abs(self._line(customer_id, line_id)["data_refueling_gb"] - expected_amount) < 1e-6)

    def assert_line_status(self, customer_id: str, line_id: str, expected_status: str) -> bool:
        """Return True if the line has this status."""
        return bool(self._line(customer_id, line_id)["status"] == expected_status)

    def assert_overdue_bill_exists(self, customer_id: str, overdue_bill_id: str) -> bool:
        """Return True if the customer has this bill and it is overdue; raise ToolError otherwise."""
        if overdue_bill_id not in self.get_customer_by_id(customer_id)["bill_ids"]:
            raise ToolError(f"Overdue bill {overdue_bill_id} not found")
        if self.row("bills", overdue_bill_id)["status"] != "Overdue":
            raise ToolError(f"Overdue bill {overdue_bill_id} is not overdue")
        return True

    def assert_no_overdue_bill(self, overdue_bill_id: str) -> bool:
        """Return True if the bill is paid or does not exist."""
        bills = [bill for bill in self.data["bills"] if bill["bill_id"] == overdue_bill_id]
        return not bills or bills[0]["status"] == "Paid"

    # Records ---------------------------------------------------------------------------------------------------

    def awaiting_payment(self, customer: Data) -> list[Data]:
        """Return the bills that the customer was asked to pay."""
        bills = [self.row("bills", bill_id) for bill_id in customer["bill_ids"]]
        return [bill for bill in bills if bill["status"] == "Awaiting Payment"]

    def row(self, table: str, key: str, *, field: str = "", name: str = "ID") -> Data:
        """Return a row of a table by its id, or by another field. Raises ToolError if there is none."""
        kind = table.removesuffix("s")
        records: list[Data] = self.data[table]
        for record in records:
            if record[field or f"{kind}_id"] == key:
                return record
        raise ToolError(f"{kind.capitalize()} with {name} {key} not found")

    def _line(self, customer_id: str, line_id: str) -> Data:
        if line_id not in self.get_customer_by_id(customer_id)["line_ids"]:
            raise ToolError(f"Line {line_id} not found for customer {customer_id}")
        return self.row("lines", line_id)

    def _set_roaming(self, customer_id: str, line_id: str, *, enabled: bool) -> str:
        line, state = self._line(customer_id, line_id), "enabled" if enabled else "disabled"
        if line["roaming_enabled"] == enabled:
            return f"Roaming was already {state}"
        line["roaming_enabled"] = enabled
        return f"Roaming {state} successfully"

    def _charge(self, customer_id: str, amount: float, description: str) -> None:
        """Add a charge to the customer's draft bill, made for next month if there is none."""
        customer = self.get_customer_by_id(customer_id)
        bills = [self.row("bills", bill_id) for bill_id in customer["bill_ids"]]
        bill = next((bill for bill in bills if bill["status"] == "Draft"), None)
        if bill is None:
            first = (TODAY.replace(day=1) + timedelta(days=32)).replace(day=1)
            last = (first + timedelta(days=32)).replace(day=1) - timedelta(days=1)
            # tau2-bench draws a random id
            bill = _bill(f"B{customer_id}D{len(bills)}", customer_id, first, last, "Draft")
            self.data["bills"].append(bill)
            customer["bill_ids"].append(bill["bill_id"])
        _add_item(bill, description, amount)


def _bill(bill_id: str, customer_id: str, first: date, last: date, status: str) -> Data:
    return {
        "bill_id": bill_id,
        "customer_id": customer_id,
        "period_start": str(first),
        "period_end": str(last),
        "issue_date": str(first),
        "total_due": 0.0,
        "due_date": str(first + timedelta(days=14)),
        "line_items": [],
        "status": status,
    }


def _add_item(bill: Data, description: str, amount: float) -> None:
    kind = "Credit" if amount < 0 else "Charge"
    bill["line_items"].append({"description": description, "amount": amount, "date": str(TODAY), "item_type": kind})
    bill["total_due"] += amount
