"""Jobs in the order of their next run."""

import heapq


class Job:
    """A name, a schedule and the number of runs so far."""

    def __init__(self, name, schedule, priority=0, limit=None):
        self.name = name
        self.schedule = schedule
        self.priority = priority
        self.limit = limit
        self.runs = 0

    @property
    def exhausted(self):
        """True if the job ran as often as it may."""
        return self.limit is not None and self.runs >= self.limit


class JobQueue:
    """Jobs by their next run; in the same minute by priority, highest first, then by name."""

    def __init__(self, now):
        self.now = now
        self.heap = []
        self.jobs = {}

    def __len__(self):
        return len(self.jobs)

    def add(self, job):
        """Queue a job for its first run after now; a job of the same name is replaced."""
        if job.name in self.jobs:
            self.cancel(job.name)
        run = job.schedule.next_after(self.now)
        if run is not None and not job.exhausted:
            self.jobs[job.name] = job
            heapq.heappush(self.heap, (run.key(), -job.priority, job.name, run))

    def cancel(self, name):
        """Remove a job by name; return True if it was queued."""
        if name not in self.jobs:
            return False
        del self.jobs[name]
        self.heap = [entry for entry in self.heap if entry[2] != name]
        heapq.heapify(self.heap)
        return True

    def peek(self):
        """Return (moment, name) of the next run; None if nothing is queued."""
        if not self.heap:
            return None
        _, _, name, run = self.heap[0]
        return run, name

    def advance(self, until):
        """Run all that is due up to and including `until`; return (moment, name) of every run in order."""
        log = []
        while self.heap and self.heap[0][3] <= until:
            _, _, name, run = heapq.heappop(self.heap)
            job = self.jobs.pop(name)
            job.runs += 1
            log.append((run, name))
            self.now = run
            self.add(job)
        self.now = until
        return log
