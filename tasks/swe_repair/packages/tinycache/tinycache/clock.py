"""Time that is told, not measured."""


class ManualClock:
    """A clock that moves when it is told to, in seconds."""

    def __init__(self, now=0.0):
        self.now = now
        self.alarms = []

    def __call__(self):
        return self.now

    def at(self, time, action):
        """Call an action when the clock reaches a time; actions of one time are called in the order they were given."""
        if time < self.now:
            raise ValueError(f"{time} is in the past")
        self.alarms.append((time, len(self.alarms), action))
        self.alarms.sort(key=lambda alarm: alarm[:2])

    def advance(self, seconds):
        """Move on and call the actions that fall due; return how many there were."""
        if seconds < 0:
            raise ValueError("time does not run backwards")
        end = self.now + seconds
        called = 0
        while self.alarms and self.alarms[0][0] <= end:
            self.now, _, action = self.alarms.pop(0)
            action()
            called += 1
        self.now = end
        return called
