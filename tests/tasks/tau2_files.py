"""A small airline database of ours in tau2-bench's layout, with tasks for every part of the score."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

POLICY = "Help the user with reservations."


def passenger(first: str, last: str) -> dict[str, str]:
    return {"first_name": first, "last_name": last, "dob": "1990-01-02"}


def database() -> dict[str, Any]:
    free = {"basic_economy": 3, "economy": 3, "business": 1}
    prices = {"basic_economy": 50, "economy": 80, "business": 200}

    def flight(number: str, origin: str, destination: str, leaves: str, lands: str) -> dict[str, Any]:
        day = {"status": "available", "available_seats": dict(free), "prices": dict(prices)}
        return {
            "flight_number": number,
            "origin": origin,
            "destination": destination,
            "scheduled_departure_time_est": leaves,
            "scheduled_arrival_time_est": lands,
            "dates": {"2024-05-20": day, "2024-05-10": {"status": "landed"}},
        }

    user = {
        "user_id": "ana_bo_1",
        "name": {"first_name": "Ana", "last_name": "Bo"},
        "address": {"address1": "1", "city": "X", "country": "USA", "state": "NY", "zip": "1"},
        "email": "ana@example.com",
        "dob": "1990-01-02",
        "payment_methods": {
            "gift_card_1": {"source": "gift_card", "id": "gift_card_1", "amount": 500},
            "certificate_1": {"source": "certificate", "id": "certificate_1", "amount": 100},
            "credit_card_1": {"source": "credit_card", "id": "credit_card_1", "brand": "visa", "last_four": "1111"},
        },
        "saved_passengers": [],
        "membership": "gold",
        "reservations": ["AAA111"],
    }
    reservation = {
        "reservation_id": "AAA111",
        "user_id": "ana_bo_1",
        "origin": "SFO",
        "destination": "JFK",
        "flight_type": "one_way",
        "cabin": "economy",
        "flights": [
            {"flight_number": "HAT1", "origin": "SFO", "destination": "JFK", "date": "2024-05-20", "price": 80}
        ],
        "passengers": [passenger("Ana", "Bo")],
        "payment_history": [{"payment_id": "credit_card_1", "amount": 80}],
        "created_at": "2024-05-01T10:00:00",
        "total_baggages": 0,
        "nonfree_baggages": 0,
        "insurance": "no",
    }
    flights = [
        flight("HAT1", "SFO", "JFK", "06:00:00", "14:00:00"),
        flight("HAT2", "SFO", "DEN", "06:00:00", "09:00:00"),
        flight("HAT3", "DEN", "JFK", "10:00:00", "15:00:00"),
        flight("HAT4", "DEN", "JFK", "08:00:00", "13:00:00"),
    ]
    return {
        "flights": {each["flight_number"]: each for each in flights},
        "users": {"ana_bo_1": user},
        "reservations": {"AAA111": reservation},
    }


def task(number: int, actions: list[tuple[str, dict[str, Any]]] | None, **criteria: Any) -> dict[str, Any]:
    gold = None if actions is None else [{"action_id": n, "name": n, "arguments": a} for n, a in actions]
    instructions = {
        "domain": "airline",
        "reason_for_call": "You want to change your trip to Denver.",
        "known_info": "Your user id is ana_bo_1.\nYour reservation is AAA111.",
        "unknown_info": "You do not remember your email address ana@example.com.",
        "task_instructions": "If it is not possible, you would rather keep your trip.",
    }
    return {
        "id": str(number),
        "user_scenario": {"persona": None, "instructions": instructions},
        "initial_state": None,
        "evaluation_criteria": {"actions": gold, **criteria},
    }


FLIGHTS = [{"flight_number": "HAT2", "date": "2024-05-20"}, {"flight_number": "HAT3", "date": "2024-05-20"}]
BOOKING = {
    "user_id": "ana_bo_1",
    "origin": "SFO",
    "destination": "JFK",
    "flight_type": "one_way",
    "cabin": "economy",
    "flights": FLIGHTS,
    "passengers": [passenger("Ana", "Bo"), passenger("Cy", "Bo")],
    "payment_methods": [
        {"payment_id": "certificate_1", "amount": 100},
        {"payment_id": "gift_card_1", "amount": 330},
    ],
    "total_baggages": 1,
    "nonfree_baggages": 1,
    "insurance": "yes",
}
TASKS = [  # booking: (80 + 80) * 2 passengers, 30 each for insurance, 50 for the bag = 430 dollars
    task(0, [("book_reservation", BOOKING)], reward_basis=["DB", "COMMUNICATE"], communicate_info=["430"]),
    task(
        1,
        [
            (
                "update_reservation_flights",
                {"reservation_id": "AAA111", "cabin": "business", "flights": FLIGHTS, "payment_id": "gift_card_1"},
            )
        ],
        communicate_info=["320"],
    ),
    task(2, [("cancel_reservation", {"reservation_id": "AAA111"})], reward_basis=["DB", "ACTION"]),
    task(3, [], reward_basis=["DB", "NL_ASSERTION"], nl_assertions=["The agent is kind.", "The agent is brief."]),
    task(4, [("send_certificate", {"user_id": "ana_bo_1", "amount": 50})], reward_basis=["DB"]),
    task(
        5,
        [
            (
                "update_reservation_baggages",
                {
                    "reservation_id": "AAA111",
                    "total_baggages": 2,
                    "nonfree_baggages": 2,
                    "payment_id": "credit_card_1",
                },
            )
        ],
        reward_basis=["DB"],
    ),
    task(
        6,
        [
            (
                "update_reservation_passengers",
                {"reservation_id": "AAA111", "passengers": [passenger("Cy", "Bo")]},
            )
        ],
        reward_basis=["DB"],
    ),
    task(7, None, reward_basis=["DB"]),
]


def write(root: Path) -> Path:
    """Write the files and return the folder for `$TAU2_DATA`."""
    folder = root / "domains" / "airline"
    folder.mkdir(parents=True)
    (folder / "db.json").write_text(json.dumps(database()))
    (folder / "tasks.json").write_text(json.dumps(TASKS))
    (folder / "policy.md").write_text(POLICY)
    (folder / "split_tasks.json").write_text(json.dumps({"train": ["0", "1"], "base": [t["id"] for t in TASKS]}))
    return root
