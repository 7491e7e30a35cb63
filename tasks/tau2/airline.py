"""The airline domain: fourteen tools of the agent. What the policy allows is not checked, as in tau2-bench."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from lmgym.backends.user.tools import ToolError, tool
from lmgym.tasks.tau2.arithmetic import calculated
from lmgym.tasks.tau2.toolkit import Data, Toolkit

NOW = "2024-05-15T15:00:00"
NEW_RESERVATIONS = ("HATHAT", "HATHAU", "HATHAV")
NEW_CERTIFICATES = ("certificate_3221322", "certificate_3221323", "certificate_3221324")
AIRPORTS = {
    **{"SFO": "San Francisco", "JFK": "New York", "LAX": "Los Angeles", "ORD": "Chicago", "DFW": "Dallas"},
    **{"DEN": "Denver", "SEA": "Seattle", "ATL": "Atlanta", "MIA": "Miami", "BOS": "Boston", "PHX": "Phoenix"},
    **{"IAH": "Houston", "LAS": "Las Vegas", "MCO": "Orlando", "EWR": "Newark", "CLT": "Charlotte"},
    **{"MSP": "Minneapolis", "DTW": "Detroit", "PHL": "Philadelphia", "LGA": "LaGuardia"},
}
TIMES = ("departure", "arrival")
Cabin = Literal["business", "economy", "basic_economy"]
FlightType = Literal["round_trip", "one_way"]
Insurance = Literal["yes", "no"]
ReservationId = Annotated[str, "such as '8JX2WO'"]
Airport = Annotated[str, "IATA code, such as 'JFK'"]
Date = Annotated[str, "YYYY-MM-DD"]


class BookedFlight(TypedDict):
    """A flight on a day."""

    flight_number: str
    date: Date


class BookedPassenger(TypedDict):
    """A passenger with their date of birth."""

    first_name: str
    last_name: str
    dob: Date


class BookedPayment(TypedDict):
    """Whole dollars from a payment method."""

    payment_id: str
    amount: int


def airline_data(content: Data) -> Data:
    """Return a database as loaded from its file, reservations with all their fields."""
    reservations = {key: {**each, "status": each.get("status")} for key, each in content["reservations"].items()}
    for user in content["users"].values():
        for method in user["payment_methods"].values():
            if "amount" in method:
                method["amount"] = float(method["amount"])
    return {**content, "reservations": reservations}


class AirlineTools(Toolkit):
    """Tools over flights, users and reservations."""

    @tool
    def book_reservation(
        self,
        user_id: str,
        origin: Airport,
        destination: Airport,
        flight_type: FlightType,
        cabin: Cabin,
        flights: list[BookedFlight],
        passengers: list[BookedPassenger],
        payment_methods: list[BookedPayment],
        total_baggages: int,
        nonfree_baggages: int,
        insurance: Insurance,
    ) -> Data:
        """Book a reservation."""
        user = self._user(user_id)
        reservation_id = next((each for each in NEW_RESERVATIONS if each not in self.data["reservations"]), "")
        if not reservation_id:
            raise ToolError("Too many reservations")
        seats = len(passengers)
        days = [self._bookable(flight, cabin, seats) for flight in flights]
        booked = [self._booked(flight, day["prices"][cabin]) for flight, day in zip(flights, days, strict=True)]
        price = seats * sum(flight["price"] for flight in booked)
        price += 30 * seats * (insurance == "yes") + 50 * nonfree_baggages
        payments = [{"payment_id": each["payment_id"], "amount": each["amount"]} for each in payment_methods]
        self._check_payments(user, payments, price)
        for payment in payments:
            method = user["payment_methods"].get(payment["payment_id"])
            if method is not None and method["source"] == "gift_card":
                method["amount"] -= payment["amount"]
            elif method is not None and method["source"] == "certificate":
                user["payment_methods"].pop(payment["payment_id"])
        for day in days:
            day["available_seats"][cabin] -= seats
        reservation: Data = {
            "reservation_id": reservation_id,
            "user_id": user_id,
            "origin": origin,
            "destination": destination,
            "flight_type": flight_type,
            "cabin": cabin,
            "flights": booked,
            "passengers": _people(passengers),
            "payment_history": payments,
            "created_at": NOW,
            "total_baggages": total_baggages,
            "nonfree_baggages": nonfree_baggages,
            "insurance": insurance,
            "status": None,
        }
        self.data["reservations"][reservation_id] = reservation
        user["reservations"].append(reservation_id)
        return reservation

    @tool
    def calculate(self, expression: Annotated[str, "numbers with + - * / and brackets"]) -> str:
        """Calculate an arithmetic expression, rounded to two digits."""
        return calculated(expression)

    @tool
    def cancel_reservation(self, reservation_id: ReservationId) -> Data:
        """Cancel a whole reservation and refund its payments."""
        reservation = self._reservation(reservation_id)
        history = reservation["payment_history"]
        history.extend([{**payment, "amount": -payment["amount"]} for payment in history])
        reservation["status"] = "cancelled"
        return reservation

    @tool
    def get_reservation_details(self, reservation_id: ReservationId) -> Data:
        """Return the details of a reservation."""
        return self._reservation(reservation_id)

    @tool
    def get_user_details(self, user_id: Annotated[str, "such as 'sara_doe_496'"]) -> Data:
        """Return the details of a user, reservation ids included."""
        return self._user(user_id)

    @tool
    def list_all_airports(self) -> list[dict[str, str]]:
        """Return the codes and cities of all airports."""
        return [{"iata": code, "city": city} for code, city in AIRPORTS.items()]

    @tool
    def search_direct_flight(self, origin: Airport, destination: Airport, date: Date) -> list[Data]:
        """Search direct flights between two airports on a day."""
        return self._search(date, origin=origin, destination=destination)

    @tool
    def search_onestop_flight(self, origin: Airport, destination: Airport, date: Date) -> list[list[Data]]:
        """Search connections with one stop between two airports on a day."""
        connections = []
        for first in self._search(date, origin=origin):
            arrival = first["scheduled_arrival_time_est"]
            try:
                following = f"2024-05-{int(date[-2:]) + 1}" if "+1" in arrival else date
            except ValueError as error:
                raise ToolError(f"{date!r} is no day as YYYY-MM-DD") from error
            for second in self._search(
                following, origin=first["destination"], destination=destination, leave_after=arrival
            ):
                connections.append([{**first, "date": date}, {**second, "date": following}])
        return connections

    @tool
    def send_certificate(self, user_id: str, amount: int) -> str:
        """Give a user a travel certificate. Be careful: it is money."""
        methods = self._user(user_id)["payment_methods"]
        new = next((each for each in NEW_CERTIFICATES if each not in methods), "")
        if not new:
            raise ToolError("Too many certificates")
        methods[new] = {"source": "certificate", "id": new, "amount": float(amount)}
        return f"Certificate {new} added to user {user_id} with amount {amount}."

    @tool
    def transfer_to_human_agents(self, summary: Annotated[str, "summary of the user's issue"]) -> str:
        """Transfer the user to a human, if they ask for one or policy and tools cannot solve the issue."""
        return "Transfer successful"

    @tool
    def update_reservation_baggages(
        self, reservation_id: ReservationId, total_baggages: int, nonfree_baggages: int, payment_id: str
    ) -> Data:
        """Change the numbers of bags of a reservation."""
        reservation = self._reservation(reservation_id)
        price = 50 * max(0, nonfree_baggages - reservation["nonfree_baggages"])
        self._pay(reservation, payment_id, price)
        reservation |= {"total_baggages": total_baggages, "nonfree_baggages": nonfree_baggages}
        return reservation

    @tool
    def update_reservation_flights(
        self,
        reservation_id: ReservationId,
        cabin: Cabin,
        flights: Annotated[list[BookedFlight], "all flights of the reservation, unchanged ones included"],
        payment_id: Annotated[str, "payment method that pays or receives the difference"],
    ) -> Data:
        """Change the flights or the cabin of a reservation."""
        reservation = self._reservation(reservation_id)
        passengers = len(reservation["passengers"])
        booked = []
        for flight in flights:
            kept = [
                each
                for each in reservation["flights"]
                if (each["flight_number"], each["date"]) == (flight["flight_number"], flight["date"])
                and cabin == reservation["cabin"]
            ]
            if kept:
                booked.append(kept[0])
            else:
                booked.append(self._booked(flight, self._bookable(flight, cabin, passengers)["prices"][cabin]))
        price = passengers * (
            sum(flight["price"] for flight in booked) - sum(flight["price"] for flight in reservation["flights"])
        )
        self._pay(reservation, payment_id, price)
        reservation |= {"flights": booked, "cabin": cabin}
        return reservation

    @tool
    def update_reservation_passengers(self, reservation_id: ReservationId, passengers: list[BookedPassenger]) -> Data:
        """Change the passengers of a reservation; their number stays."""
        reservation = self._reservation(reservation_id)
        if len(passengers) != len(reservation["passengers"]):
            raise ToolError("Number of passengers does not match")
        reservation["passengers"] = _people(passengers)
        return reservation

    @tool
    def get_flight_status(self, flight_number: str, date: Date) -> str:
        """Return the status of a flight on a day."""
        return str(self._day({"flight_number": flight_number, "date": date})["status"])

    # Records ---------------------------------------------------------------------------------------------------

    def _user(self, user_id: str) -> Data:
        return self.record("users", user_id, f"User {user_id} not found")

    def _reservation(self, reservation_id: str) -> Data:
        return self.record("reservations", reservation_id, f"Reservation {reservation_id} not found")

    def _day(self, flight: BookedFlight) -> Data:
        number = flight["flight_number"]
        days: Any = self.record("flights", number, f"Flight {number} not found")["dates"]
        if flight["date"] not in days:
            raise ToolError(f"Flight {number} not found on date {flight['date']}")
        day: Data = days[flight["date"]]
        return day

    def _bookable(self, flight: BookedFlight, cabin: str, seats: int) -> Data:
        day = self._day(flight)
        if day["status"] != "available":
            raise ToolError(f"Flight {flight['flight_number']} not available on date {flight['date']}")
        if day["available_seats"][cabin] < seats:
            raise ToolError(f"Not enough seats on flight {flight['flight_number']}")
        return day

    def _booked(self, flight: BookedFlight, price: int) -> Data:
        route = self.data["flights"][flight["flight_number"]]
        places = {"origin": route["origin"], "destination": route["destination"]}
        return {"flight_number": flight["flight_number"], **places, "date": flight["date"], "price": price}

    def _check_payments(self, user: Data, payments: Sequence[Data], price: int) -> None:
        for payment in payments:
            method = user["payment_methods"].get(payment["payment_id"])
            if method is None:
                raise ToolError(f"Payment method {payment['payment_id']} not found")
            if method["source"] in ("gift_card", "certificate") and method["amount"] < payment["amount"]:
                raise ToolError(f"Not enough balance in payment method {payment['payment_id']}")
        total = sum(payment["amount"] for payment in payments)
        if total != price:
            raise ToolError(f"Payment amount does not add up, total price is {price}, but paid {total}")

    def _pay(self, reservation: Data, payment_id: str, price: int) -> None:
        """Take `price` dollars from a payment method; a negative price is refunded."""
        method = self._user(reservation["user_id"])["payment_methods"].get(payment_id)
        if method is None:
            raise ToolError("Payment method not found")
        if method["source"] == "certificate":
            raise ToolError("Certificate cannot be used to update reservation")
        if method["source"] == "gift_card":
            if method["amount"] < price:
                raise ToolError("Gift card balance is not enough")
            method["amount"] -= price
        if price:
            reservation["payment_history"].append({"payment_id": payment_id, "amount": price})

    def _search(
        self, date: str, *, origin: str, destination: str | None = None, leave_after: str | None = None
    ) -> list[Data]:
        matches = []
        for flight in self.data["flights"].values():
            day = flight["dates"].get(date)
            departure = flight["scheduled_departure_time_est"]
            between = flight["origin"] == origin and destination in (None, flight["destination"])
            in_time = leave_after is None or departure >= leave_after
            if between and in_time and day is not None and day["status"] == "available":
                route = {name: flight[name] for name in ("flight_number", "origin", "destination")}
                times = {f"scheduled_{name}_time_est": flight[f"scheduled_{name}_time_est"] for name in TIMES}
                state = {"date": None, "available_seats": day["available_seats"], "prices": day["prices"]}
                matches.append({**route, "status": "available", **times, **state})
        return matches


def _people(passengers: Sequence[BookedPassenger]) -> list[Data]:
    names = ("first_name", "last_name", "dob")
    return [{name: passenger[name] for name in names} for passenger in passengers]  # type: ignore[literal-required]
