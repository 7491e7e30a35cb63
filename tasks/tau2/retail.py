"""The retail domain: sixteen tools of the agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from lmgym.backends.user.tools import ToolError, tool
from lmgym.tasks.tau2.arithmetic import calculated
from lmgym.tasks.tau2.toolkit import Data, Toolkit

OrderId = Annotated[str, "order id with its '#', such as '#W0000000'"]
ItemIds = Annotated[list[str], "item ids; one that was bought twice may stand twice"]
NewItemIds = Annotated[list[str], "item ids of the same products, in the same order"]
PaymentId = Annotated[str, "payment method id of the customer, such as 'gift_card_0000000'"]
LATER = (  # fields of an order that actions set
    *("cancel_reason", "exchange_items", "exchange_new_items", "exchange_payment_method_id"),
    *("exchange_price_difference", "return_items", "return_payment_method_id"),
)


def retail_data(content: Data) -> Data:
    """Return a database as loaded from its file, orders with all their fields."""
    for user in content["users"].values():
        for method in user["payment_methods"].values():
            if "balance" in method:
                method["balance"] = float(method["balance"])
    orders = {key: {**order, **{name: order.get(name) for name in LATER}} for key, order in content["orders"].items()}
    return {**content, "orders": orders}


class RetailTools(Toolkit):
    """Tools over products, users and orders."""

    @tool
    def calculate(self, expression: Annotated[str, "numbers with + - * / and brackets"]) -> str:
        """Calculate an arithmetic expression, rounded to two digits."""
        return calculated(expression)

    @tool
    def cancel_pending_order(
        self, order_id: OrderId, reason: Annotated[str, "'no longer needed' or 'ordered by mistake'"]
    ) -> Data:
        """Cancel a pending order and refund it. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if order["status"] != "pending":
            raise ToolError("Non-pending order cannot be cancelled")
        if reason not in ("no longer needed", "ordered by mistake"):
            raise ToolError("Invalid reason")
        refunds = []
        for payment in order["payment_history"]:
            refunds.append(_payment("refund", payment["amount"], payment["payment_method_id"]))
            self._add_to_gift_card(self._method(order["user_id"], payment["payment_method_id"]), payment["amount"])
        order |= {"status": "cancelled", "cancel_reason": reason}
        order["payment_history"].extend(refunds)
        return order

    @tool
    def exchange_delivered_order_items(
        self, order_id: OrderId, item_ids: ItemIds, new_item_ids: NewItemIds, payment_method_id: PaymentId
    ) -> Data:
        """Exchange items of a delivered order, once an order. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise ToolError("Non-delivered order cannot be exchanged")
        if missing := _too_many(order, item_ids):
            raise ToolError(f"Number of {missing} not found.")
        if len(item_ids) != len(new_item_ids):
            raise ToolError("The number of items to be exchanged should match.")
        difference = 0.0
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item = self._item(order, item_id)
            difference += self._available(item["product_id"], new_item_id)["price"] - item["price"]
        difference = round(difference, 2)
        method = self._method(order["user_id"], payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            raise ToolError("Insufficient gift card balance to pay for the price difference")
        order |= {
            "status": "exchange requested",
            "exchange_items": sorted(item_ids),
            "exchange_new_items": sorted(new_item_ids),
            "exchange_payment_method_id": payment_method_id,
            "exchange_price_difference": difference,
        }
        return order

    @tool
    def find_user_id_by_name_zip(self, first_name: str, last_name: str, zip: str) -> str:  # the argument's own name
        """Find a user id by name and zip code, for users who do not remember their email address."""
        for user_id, user in self.data["users"].items():
            name = (user["name"]["first_name"].lower(), user["name"]["last_name"].lower())
            if name == (first_name.lower(), last_name.lower()) and user["address"]["zip"] == zip:
                return str(user_id)
        raise ToolError("User not found")

    @tool
    def find_user_id_by_email(self, email: str) -> str:
        """Find a user id by email address."""
        for user_id, user in self.data["users"].items():
            if user["email"].lower() == email.lower():
                return str(user_id)
        raise ToolError("User not found")

    @tool
    def get_item_details(self, item_id: Annotated[str, "item id, which is no product id"]) -> Data:
        """Return the inventory details of one item."""
        for product in self.data["products"].values():
            if item_id in product["variants"]:
                variant: Data = product["variants"][item_id]
                return variant
        raise ToolError("Item not found")

    @tool
    def get_order_details(self, order_id: OrderId) -> Data:
        """Return the status and details of an order."""
        return self._order(order_id)

    @tool
    def get_product_details(self, product_id: Annotated[str, "product id, which is no item id"]) -> Data:
        """Return the inventory details of a product with all its items."""
        return self._product(product_id)

    @tool
    def get_user_details(self, user_id: Annotated[str, "such as 'sara_doe_496'"]) -> Data:
        """Return the details of a user, order ids included."""
        return self._user(user_id)

    @tool
    def list_all_product_types(self) -> str:
        """Return the names and ids of all products."""
        names = {product["name"]: product["product_id"] for product in self.data["products"].values()}
        return json.dumps(names, sort_keys=True)

    @tool
    def modify_pending_order_address(
        self, order_id: OrderId, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Data:
        """Change the delivery address of a pending order. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if "pending" not in order["status"]:
            raise ToolError("Non-pending order cannot be modified")
        order["address"] = _address(address1, address2, city, state, country, zip)
        return order

    @tool
    def modify_pending_order_items(
        self, order_id: OrderId, item_ids: ItemIds, new_item_ids: NewItemIds, payment_method_id: PaymentId
    ) -> Data:
        """Change items of a pending order, once an order. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if order["status"] != "pending":
            raise ToolError("Non-pending order cannot be modified")
        if missing := _too_many(order, item_ids):
            raise ToolError(f"{missing} not found")
        if len(item_ids) != len(new_item_ids):
            raise ToolError("The number of items to be exchanged should match")
        difference, variant = 0.0, None
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            if item_id == new_item_id:
                raise ToolError("The new item id should be different from the old item id")
            item = self._item(order, item_id)
            variant = self._available(item["product_id"], new_item_id)
            difference += variant["price"] - item["price"]
        method = self._method(order["user_id"], payment_method_id)
        if method["source"] == "gift_card" and method["balance"] < difference:
            raise ToolError("Insufficient gift card balance to pay for the new item")
        kind = "payment" if difference > 0 else "refund"
        order["payment_history"].append(_payment(kind, abs(difference), payment_method_id))
        self._add_to_gift_card(method, -difference)
        for item_id, new_item_id in zip(item_ids, new_item_ids, strict=True):
            item = self._item(order, item_id)
            assert variant is not None  # there is a pair
            # as in tau2-bench, all new items get the price and options of the last one
            item |= {"item_id": new_item_id, "price": variant["price"], "options": variant["options"]}
        order["status"] = "pending (item modified)"
        return order

    @tool
    def modify_pending_order_payment(self, order_id: OrderId, payment_method_id: PaymentId) -> Data:
        """Change the payment method of a pending order. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if "pending" not in order["status"]:
            raise ToolError("Non-pending order cannot be modified")
        method = self._method(order["user_id"], payment_method_id)
        history = order["payment_history"]
        if len(history) != 1 or history[0]["transaction_type"] != "payment":
            raise ToolError("There should be exactly one payment for a pending order")
        old_id, amount = history[0]["payment_method_id"], history[0]["amount"]
        if old_id == payment_method_id:
            raise ToolError("The new payment method should be different from the current one")
        if method["source"] == "gift_card" and method["balance"] < amount:
            raise ToolError("Insufficient gift card balance to pay for the order")
        history.extend([_payment("payment", amount, payment_method_id), _payment("refund", amount, old_id)])
        self._add_to_gift_card(method, -amount)
        self._add_to_gift_card(self._method(order["user_id"], old_id), amount)
        return order

    @tool
    def modify_user_address(
        self, user_id: str, address1: str, address2: str, city: str, state: str, country: str, zip: str
    ) -> Data:
        """Change a user's default address. Explain the details and get an explicit yes before."""
        user = self._user(user_id)
        user["address"] = _address(address1, address2, city, state, country, zip)
        return user

    @tool
    def return_delivered_order_items(self, order_id: OrderId, item_ids: ItemIds, payment_method_id: PaymentId) -> Data:
        """Return items of a delivered order. Explain the details and get an explicit yes before."""
        order = self._order(order_id)
        if order["status"] != "delivered":
            raise ToolError("Non-delivered order cannot be returned")
        method = self._method(order["user_id"], payment_method_id)
        original = order["payment_history"][0]["payment_method_id"]
        if method["source"] != "gift_card" and payment_method_id != original:
            raise ToolError("Payment method should be the original payment method")
        if _too_many(order, item_ids):
            raise ToolError("Some item not found")
        order |= {
            "status": "return requested",
            "return_items": sorted(item_ids),
            "return_payment_method_id": payment_method_id,
        }
        return order

    @tool
    def transfer_to_human_agents(self, summary: Annotated[str, "summary of the user's issue"]) -> str:
        """Transfer the user to a human, if they ask for one or policy and tools cannot solve the issue."""
        return "Transfer successful"

    # Records ---------------------------------------------------------------------------------------------------

    def _order(self, order_id: str) -> Data:
        return self.record("orders", order_id, "Order not found")

    def _user(self, user_id: str) -> Data:
        return self.record("users", user_id, "User not found")

    def _product(self, product_id: str) -> Data:
        return self.record("products", product_id, "Product not found")

    def _method(self, user_id: str, payment_method_id: str) -> Data:
        methods: Any = self._user(user_id)["payment_methods"]
        if payment_method_id not in methods:
            raise ToolError("Payment method not found")
        method: Data = methods[payment_method_id]
        return method

    def _available(self, product_id: str, item_id: str) -> Data:
        variants = self._product(product_id)["variants"]
        if item_id not in variants:
            raise ToolError("Variant not found")
        variant: Data = variants[item_id]
        if not variant["available"]:
            raise ToolError(f"New item {item_id} not found or available")
        return variant

    def _item(self, order: Data, item_id: str) -> Data:
        items: list[Data] = order["items"]
        for item in items:
            if item["item_id"] == item_id:
                return item
        raise ToolError(f"Item {item_id} not found")

    def _add_to_gift_card(self, method: Data, amount: float) -> None:
        if method["source"] == "gift_card":
            method["balance"] = round(method["balance"] + amount, 2)


def _too_many(order: Data, item_ids: Sequence[str]) -> str:
    """Return an item that is named more often than the order has it; "" if there is none."""
    bought = [item["item_id"] for item in order["items"]]
    return next((item_id for item_id in item_ids if item_ids.count(item_id) > bought.count(item_id)), "")


def _payment(kind: str, amount: float, payment_method_id: str) -> Data:
    return {"transaction_type": kind, "amount": amount, "payment_method_id": payment_method_id}


def _address(address1: str, address2: str, city: str, state: str, country: str, zip: str) -> Data:
    return {"address1": address1, "address2": address2, "city": city, "country": country, "state": state, "zip": zip}
