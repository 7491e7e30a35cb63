"""Schedules in the notation of cron."""

from .field import FieldError, parse_field
from .moment import Moment
from .queue import Job, JobQueue
from .schedule import Schedule

__all__ = ["FieldError", "Job", "JobQueue", "Moment", "Schedule", "parse_field"]
