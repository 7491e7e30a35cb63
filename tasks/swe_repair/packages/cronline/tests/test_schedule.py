import pytest
from cronline import FieldError, Job, JobQueue, Moment, Schedule


def after(line, text):
    return Schedule.parse(line).next_after(Moment.parse(text))


def test_next_quarter_of_an_hour():
    assert after("*/15 * * * *", "2024-05-01 10:15") == Moment(2024, 5, 1, 10, 30)


def test_next_is_tomorrow():
    assert after("30 6 * * *", "2024-05-01 06:30") == Moment(2024, 5, 2, 6, 30)


def test_office_hours_skip_the_weekend():
    assert after("*/15 9-17 * * mon-fri", "2024-05-03 17:45") == Moment(2024, 5, 6, 9, 0)


def test_short_months_are_skipped():
    assert after("0 0 31 * *", "2024-03-31 00:00") == Moment(2024, 5, 31)


def test_leap_day():
    assert after("0 12 29 2 *", "2024-02-29 12:00") == Moment(2028, 2, 29, 12)


def test_impossible_day():
    assert after("0 0 30 feb *", "2024-01-01") is None


def test_year_end():
    assert after("@yearly", "2024-01-01 00:00") == Moment(2025, 1, 1)
    assert after("@monthly", "2024-12-15 08:00") == Moment(2025, 1, 1)


def test_either_day_field_may_match():
    schedule = Schedule.parse("0 0 13 * fri")
    assert schedule.next_after(Moment(2024, 5, 10)) == Moment(2024, 5, 13)
    assert schedule.next_after(Moment(2024, 5, 13)) == Moment(2024, 5, 17)


def test_weekday_alone_restricts():
    schedule = Schedule.parse("0 0 * * sun")
    assert not schedule.allows_day(Moment(2024, 5, 6))
    assert schedule.allows_day(Moment(2024, 5, 5))


def test_matches_needs_the_minute_and_hour():
    schedule = Schedule.parse("5 4 * * *")
    assert schedule.matches(Moment(2024, 1, 1, 4, 5))
    assert not schedule.matches(Moment(2024, 1, 1, 5, 4))


def test_runs_include_the_start_but_not_the_end():
    runs = Schedule.parse("0 */12 * * *").runs(Moment(2024, 1, 1), Moment(2024, 1, 2))
    assert runs == [Moment(2024, 1, 1), Moment(2024, 1, 1, 12)]


def test_first_of_day():
    schedule = Schedule.parse("10,40 8,20 * * *")
    assert schedule.first_of_day() == (8, 10)
    assert schedule.first_of_day(8, 11) == (8, 40)
    assert schedule.first_of_day(8, 41) == (20, 10)
    assert schedule.first_of_day(20, 41) is None


def test_runs_per_day_and_gaps():
    schedule = Schedule.parse("0 6,18 * * *")
    assert schedule.runs_per_day() == 2
    assert schedule.longest_gap(Moment(2024, 1, 1), 3) == 720
    assert schedule.longest_gap(Moment(2024, 1, 1), 0) == 0


@pytest.mark.parametrize("line", ["* * * *", "", "* * * * * *", "61 * * * *"])
def test_bad_lines(line):
    with pytest.raises(FieldError):
        Schedule.parse(line)


def test_description():
    assert Schedule.parse("0 9-17 * * mon-fri").describe() == "minute 0; hour 9-17; on mon-fri"
    assert Schedule.parse("* * 1 1,7 *").describe() == "every minute; every hour; day 1; month 1, 7"


def queue(*jobs):
    made = JobQueue(Moment(2024, 1, 1))
    for job in jobs:
        made.add(job)
    return made


def test_queue_runs_in_order():
    log = queue(Job("b", Schedule.parse("*/30 * * * *")), Job("a", Schedule.parse("45 * * * *"))).advance(
        Moment(2024, 1, 1, 1)
    )
    assert [(moment.minute, name) for moment, name in log] == [(30, "b"), (45, "a"), (0, "b")]


def test_priority_then_name_in_the_same_minute():
    hourly = Schedule.parse("@hourly")
    made = queue(Job("c", hourly), Job("b", hourly), Job("a", hourly, priority=-1), Job("z", hourly, priority=9))
    assert [name for _, name in made.advance(Moment(2024, 1, 1, 1))] == ["z", "b", "c", "a"]


def test_limited_jobs_leave_the_queue():
    job = Job("once", Schedule.parse("@hourly"), limit=2)
    made = queue(job)
    assert len(made.advance(Moment(2024, 1, 2))) == 2
    assert job.exhausted
    assert len(made) == 0
    assert made.peek() is None


def test_cancelled_jobs_do_not_run():
    made = queue(Job("a", Schedule.parse("@hourly")), Job("b", Schedule.parse("@daily")))
    assert made.cancel("a")
    assert not made.cancel("a")
    assert made.peek() == (Moment(2024, 1, 2), "b")


def test_a_job_of_the_same_name_is_replaced():
    made = queue(Job("a", Schedule.parse("@hourly")), Job("a", Schedule.parse("@daily")))
    assert len(made) == 1
    assert made.advance(Moment(2024, 1, 1, 12)) == []
