"""The seventeen tools of the desk: eight that read, nine that change the database.

They refuse what is impossible (unknown ids, a wrong status, no stock). The agent has to judge what the policy allows:
the tools take back goods on final sale and give credit for orders that came in time.
"""

from __future__ import annotations

import ast
import operator
from typing import Annotated, Any, Literal

from lmgym.backends.user.tools import ToolError, tool
from lmgym.tasks.retail_desk.shop import Data

CustomerId = Annotated[str, "customer id, such as 'ada_abel'"]
OrderId = Annotated[str, "order id, such as 'N12345'"]
ItemId = Annotated[str, "item id, such as 'I12345'"]
PaymentId = Annotated[str, "payment id from the customer's record, such as 'card_12345'"]
CancelReason = Literal["no longer needed", "ordered by mistake", "takes too long"]
RequestKind = Literal["cancel", "change address", "swap", "return", "exchange", "credit"]
Rule = Literal[
    "order has left",
    "too late to return",
    "final sale",
    "other product",
    "out of stock",
    "refund method",
    "delivered in time",
    "not the customer's order",
]
Topic = Literal["damaged goods", "courier", "invoice"]
OPERATORS: dict[type[Any], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
LONGEST = 100  # characters of an expression
CREDIT = {False: 5.0, True: 10.0}  # euros for a late delivery, by membership


class DeskTools:
    """The tools over one database."""

    def __init__(self, data: Data) -> None:
        self.data = data

    # Reading ---------------------------------------------------------------------------------------------------

    @tool
    def find_customer_by_email(self, email: Annotated[str, "email address"]) -> str:
        """Return the id of the customer with this email address."""
        return self._find(lambda customer: customer["email"] == email.strip().lower())

    @tool
    def find_customer_by_name(self, first_name: str, last_name: str, postcode: str) -> str:
        """Return the id of the customer with this name and postcode."""
        name = (first_name.strip().lower(), last_name.strip().lower(), postcode.strip())
        return self._find(
            lambda one: (one["first_name"].lower(), one["last_name"].lower(), one["address"]["postcode"]) == name
        )

    @tool
    def get_customer(self, customer_id: CustomerId) -> Data:
        """Return a customer's record: address, payments, membership, store credit and order ids."""
        return self._customer(customer_id)

    @tool
    def get_order(self, order_id: OrderId) -> Data:
        """Return an order: its status, dates, address, items with prices, and payment."""
        return self._order(order_id)

    @tool
    def list_products(self) -> dict[str, str]:
        """Return the ids of all products by name."""
        return {product["name"]: product["product_id"] for product in self.data["products"].values()}

    @tool
    def get_product(self, product_id: Annotated[str, "product id, such as 'P12345'"]) -> Data:
        """Return a product with its variants: item ids, options, prices and stock."""
        if product_id not in self.data["products"]:
            raise ToolError(f"no product {product_id!r}")
        return dict(self.data["products"][product_id])

    @tool
    def get_item(self, item_id: ItemId) -> Data:
        """Return one variant: its product, options, price and stock."""
        product, variant = self._variant(item_id)
        return {"product_id": product["product_id"], "name": product["name"], **variant}

    @tool
    def calculate(self, expression: Annotated[str, "numbers with + - * / and brackets"]) -> str:
        """Return the value of an expression, rounded to cents."""
        if len(expression) > LONGEST:
            raise ToolError(f"the expression has {len(expression)} characters; {LONGEST} at most")
        try:
            return f"{_value(ast.parse(expression.strip(), mode='eval').body):.2f}"
        except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
            raise ToolError(f"cannot calculate {expression!r}") from error

    # Changing --------------------------------------------------------------------------------------------------

    @tool
    def cancel_order(self, order_id: OrderId, reason: CancelReason) -> Data:
        """Cancel an order that is placed and not packed; the money goes back to the payment it came from."""
        order = self._order_in(order_id, "placed")
        self._pay_back(order, order["total"], order["paid_with"])
        order |= {"status": "cancelled", "cancelled_for": reason}
        return order

    @tool
    def change_address(self, order_id: OrderId, street: str, city: str, postcode: str) -> Data:
        """Change the delivery address of an order that has not left the store."""
        order = self._order_in(order_id, "placed", "packed")
        order["address"] = {"street": street.strip(), "city": city.strip(), "postcode": postcode.strip()}
        return order

    @tool
    def swap_item(self, order_id: OrderId, item_id: ItemId, new_item_id: ItemId, payment_id: PaymentId) -> Data:
        """Replace an item of a placed order by another variant; the difference is charged or paid back."""
        return self._replace(self._order_in(order_id, "placed"), item_id, new_item_id, payment_id)

    @tool
    def return_item(self, order_id: OrderId, item_id: ItemId, payment_id: PaymentId) -> Data:
        """Register the return of an item of a delivered order, with a refund to a payment."""
        order = self._order_in(order_id, "delivered")
        item = self._open_item(order, item_id)
        self._pay_back(order, item["price"], payment_id)
        item["returned"] = payment_id
        return order

    @tool
    def exchange_item(self, order_id: OrderId, item_id: ItemId, new_item_id: ItemId, payment_id: PaymentId) -> Data:
        """Register the exchange of an item of a delivered order; the difference is charged or paid back."""
        return self._replace(self._order_in(order_id, "delivered"), item_id, new_item_id, payment_id)

    @tool
    def give_credit(self, order_id: OrderId) -> Data:
        """Give the customer store credit for the late delivery of an order: 5 euros, members 10; once an order."""
        order = self._order_in(order_id, "delivered")
        if order.get("credit_given"):
            raise ToolError(f"credit was already given for {order_id}")
        customer = self._customer(order["customer_id"])
        customer["credit"] = round(customer["credit"] + CREDIT[customer["member"]], 2)
        order["credit_given"] = True
        return customer

    @tool
    def change_email(self, customer_id: CustomerId, email: str) -> Data:
        """Change a customer's email address."""
        customer = self._customer(customer_id)
        if email.count("@") != 1 or " " in email.strip():
            raise ToolError(f"{email[:80]!r} is no email address")
        customer["email"] = email.strip().lower()
        return customer

    @tool
    def decline_request(self, customer_id: CustomerId, order_id: OrderId, request: RequestKind, rule: Rule) -> str:
        """Record that a request about an order was declined, and by which rule of the policy."""
        self._customer(customer_id)
        self._order(order_id)
        self.data["declined"][f"{order_id} {request}"] = {"customer_id": customer_id, "rule": rule}
        return "recorded"

    @tool
    def refer_to_colleague(self, customer_id: CustomerId, order_id: OrderId, topic: Topic) -> str:
        """Hand a matter that the desk does not decide to a colleague, who will write to the customer."""
        self._customer(customer_id)
        self._order(order_id)
        self.data["referrals"][order_id] = {"customer_id": customer_id, "topic": topic}
        return "referred"

    # Records ---------------------------------------------------------------------------------------------------

    def _find(self, match: Any) -> str:
        for customer in self.data["customers"].values():
            if match(customer):
                return str(customer["customer_id"])
        raise ToolError("no such customer")

    def _customer(self, customer_id: str) -> Data:
        if customer_id not in self.data["customers"]:
            raise ToolError(f"no customer {customer_id[:80]!r}")
        customer: Data = self.data["customers"][customer_id]
        return customer

    def _order(self, order_id: str) -> Data:
        if order_id not in self.data["orders"]:
            raise ToolError(f"no order {order_id[:80]!r}")
        order: Data = self.data["orders"][order_id]
        return order

    def _order_in(self, order_id: str, *states: str) -> Data:
        order = self._order(order_id)
        if order["status"] not in states:
            raise ToolError(f"order {order_id} is {order['status']}; this needs an order that is {' or '.join(states)}")
        return order

    def _open_item(self, order: Data, item_id: str) -> Data:
        for item in order["items"]:
            if item["item_id"] == item_id and not {"returned", "exchanged_for"} & item.keys():
                return item  # type: ignore[no-any-return]  # JSON
        raise ToolError(f"order {order['order_id']} has no item {item_id[:80]!r} that is not already on its way back")

    def _variant(self, item_id: str) -> tuple[Data, Data]:
        for product in self.data["products"].values():
            if item_id in product["variants"]:
                return product, product["variants"][item_id]
        raise ToolError(f"no item {item_id[:80]!r}")

    def _replace(self, order: Data, item_id: str, new_item_id: str, payment_id: str) -> Data:
        item = self._open_item(order, item_id)
        product, variant = self._variant(new_item_id)
        if product["product_id"] != item["product_id"] or new_item_id == item_id:
            raise ToolError(f"{new_item_id} is not another variant of {item['name']}")
        if variant["stock"] < 1:
            raise ToolError(f"{new_item_id} is out of stock")
        self._pay_back(order, item["price"] - variant["price"], payment_id)
        variant["stock"] -= 1
        if order["status"] == "delivered":
            item |= {"exchanged_for": new_item_id, "difference_by": payment_id}
        else:
            item |= {"item_id": new_item_id, "options": dict(variant["options"]), "price": variant["price"]}
            order["total"] = round(sum(each["price"] for each in order["items"]), 2)
            order["difference_by"] = payment_id
        return order

    def _pay_back(self, order: Data, amount: float, payment_id: str) -> None:
        """Move `amount` euros to a payment of the order's customer; a negative amount is charged."""
        payment = self._customer(order["customer_id"])["payments"].get(payment_id)
        if payment is None:
            raise ToolError(f"{payment_id[:80]!r} is no payment of customer {order['customer_id']}")
        if payment["kind"] == "gift card":
            if payment["balance"] + amount < 0:
                raise ToolError(f"gift card {payment_id} has {payment['balance']:.2f} euros; this needs {-amount:.2f}")
            payment["balance"] = round(payment["balance"] + amount, 2)


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return float(node.value)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        value: float = OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        return value
    raise ValueError("no arithmetic")
