"""Machines with named states, guards and actions."""


class Refused(Exception):
    """An event that the present state does not take."""


class Transition:
    """From a state to another on an event, if the guard allows it."""

    def __init__(self, source, event, target, guard=None, action=None):
        self.source = source
        self.event = event
        self.target = target
        self.guard = guard
        self.action = action

    def open(self, data):
        """Return True if there is no guard, or it allows the transition."""
        return self.guard is None or bool(self.guard(data))


class Machine:
    """States may lie within others; a state takes the events of all that it lies in, its own first."""

    def __init__(self, initial, transitions, parents=None):
        self.state = initial
        self.transitions = list(transitions)
        self.parents = dict(parents or {})
        self.data = {}
        self.history = [initial]
        self.watchers = []

    def enclosing(self, state):
        """Return a state and all that it lies in, inside first."""
        line = []
        while state is not None:
            line.append(state)
            state = self.parents.get(state)
        return line

    def inside(self, state):
        """Return True if the machine is in a state or in one that lies within it."""
        return state in self.enclosing(self.state)

    def match(self, event):
        """Return the transition that an event would take; None if there is none."""
        for state in self.enclosing(self.state):
            for transition in self.transitions:
                if transition.source == state and transition.event == event and transition.open(self.data):
                    return transition
        return None

    def events(self):
        """Return the events that the present state takes, sorted."""
        names = {transition.event for transition in self.transitions}
        return sorted(name for name in names if self.match(name) is not None)

    def send(self, event, **data):
        """Take an event and return the new state. Raises Refused, and changes nothing, if it is not taken."""
        before = dict(self.data)
        self.data.update(data)
        transition = self.match(event)
        if transition is None:
            self.data = before
            raise Refused(f"{self.state} does not take {event}")
        left, entered = self.path(self.state, transition.target)
        if transition.action is not None:
            transition.action(self.data)
        self.state = transition.target
        self.history.append(self.state)
        for watcher in self.watchers:
            watcher(left, entered)
        return self.state

    def path(self, source, target):
        """Return the states that are left, inside first, and entered, outside first."""
        inner, outer = self.enclosing(source), self.enclosing(target)
        left = [state for state in inner if state not in outer]
        entered = [state for state in outer if state not in inner]
        if source == target:
            return [source], [target]
        return left, entered[::-1]

    def run(self, events):
        """Send events until one is refused; return how many were taken."""
        taken = 0
        for event in events:
            try:
                self.send(event)
            except Refused:
                break
            taken += 1
        return taken

    def unreachable(self):
        """Return the states that no chain of transitions reaches from the first, guards aside, sorted."""
        reached = [self.history[0]]
        for state in reached:
            around = self.enclosing(state)
            for transition in self.transitions:
                if transition.source in around and transition.target not in reached:
                    reached.append(transition.target)
        states = {transition.source for transition in self.transitions} | {
            transition.target for transition in self.transitions
        }
        covered = {outer for state in reached for outer in self.enclosing(state)}
        return sorted(states - covered)
