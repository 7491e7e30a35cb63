"""The mock domain, on which tau2-bench tests itself: four tools of the agent, two of the user."""

from __future__ import annotations

from typing import Annotated, Literal

from lmgym.backends.user.tools import tool
from lmgym.tasks.tau2.toolkit import Data, Toolkit, with_defaults

TaskStatus = Literal["pending", "completed"]


def mock_data(content: Data) -> Data:
    """Return a database as loaded from its file, tasks with all their fields."""
    tasks = {key: with_defaults(task, {"description": None}) for key, task in content["tasks"].items()}
    return {**content, "tasks": tasks}


class MockTools(Toolkit):
    """Tools over tasks and users."""

    FUNCTIONS = ("assert_number_of_tasks", "assert_task_status")

    @tool
    def create_task(self, user_id: str, title: str, description: str | None = None) -> Data:
        """Create a pending task for a user."""
        user = self.record("users", user_id, f"User {user_id} not found")
        task_id = f"task_{len(self.data['tasks']) + 1}"
        task: Data = {"task_id": task_id, "title": title, "description": description, "status": "pending"}
        self.data["tasks"][task_id] = task
        user["tasks"].append(task_id)
        return task

    @tool
    def get_users(self) -> list[Data]:
        """Return all users."""
        return list(self.data["users"].values())

    @tool
    def update_task_status(self, task_id: str, status: TaskStatus) -> Data:
        """Change the status of a task."""
        task = self._task(task_id)
        task["status"] = status
        return task

    @tool
    def transfer_to_human_agents(self, summary: Annotated[str, "summary of the user's issue"]) -> str:
        """Transfer the user to a human."""
        return "Transfer successful"

    def assert_number_of_tasks(self, user_id: str, expected_number: int) -> bool:
        """Return True if the user has so many tasks."""
        return len(self.record("users", user_id, f"User {user_id} not found")["tasks"]) == expected_number

    def assert_task_status(self, task_id: str, expected_status: str) -> bool:
        """Return True if the task has this status."""
        return bool(self._task(task_id)["status"] == expected_status)

    def _task(self, task_id: str) -> Data:
        return self.record("tasks", task_id, f"Task {task_id} not found")


class MockUserTools(Toolkit):
    """The user's tools over notifications."""

    FUNCTIONS = ("add_notification", "assert_notification_status")

    @tool
    def check_notifications(self) -> list[Data]:
        """Return your notifications."""
        return list(self.data.get("notifications", {}).values())

    @tool
    def dismiss_notification(self, notification_id: str) -> str:
        """Mark a notification as read."""
        self._notification(notification_id)["status"] = "read"
        return f"Notification {notification_id} dismissed"

    def add_notification(self, notification_id: str, message: str, task_id: str | None = None) -> Data:
        """Add an unread notification."""
        notification: Data = {"notification_id": notification_id, "message": message}
        notification |= {"status": "unread", "task_id": task_id}
        self.data.setdefault("notifications", {})[notification_id] = notification
        return notification

    def assert_notification_status(self, notification_id: str, expected_status: str) -> bool:
        """Return True if the notification has this status."""
        return bool(self._notification(notification_id)["status"] == expected_status)

    def _notification(self, notification_id: str) -> Data:
        return self.record("notifications", notification_id, f"Notification {notification_id} not found")
