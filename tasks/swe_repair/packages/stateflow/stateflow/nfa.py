"""Automata that may be in several states at once."""

from .dfa import DFA, Automaton


class NFA(Automaton):
    """States are numbers; moves without a letter are free."""

    def __init__(self):
        self.moves = []
        self.free = []
        self.start = self.new_state()
        self.final = set()

    def new_state(self):
        """Add a state and return its number."""
        self.moves.append({})
        self.free.append([])
        return len(self.moves) - 1

    def connect(self, start, letter, end):
        """Add a move; a letter of None makes it free."""
        if letter is None:
            self.free[start].append(end)
        else:
            self.moves[start].setdefault(letter, []).append(end)

    def closure(self, states):
        """Return the states that free moves lead to, those given included."""
        reached = set(states)
        stack = list(states)
        while stack:
            for state in self.free[stack.pop()]:
                if state not in reached:
                    reached.add(state)
                    stack.append(state)
        return frozenset(reached)

    def step(self, states, letter):
        """Return the states after a letter."""
        targets = set()
        for state in states:
            targets.update(self.moves[state].get(letter, ()))
        return self.closure(targets)

    def accepts(self, word):
        """Return True if some way through the word ends in a final state."""
        states = self.closure([self.start])
        for letter in word:
            states = self.step(states, letter)
        return not self.final.isdisjoint(states)

    def alphabet(self):
        """Return all letters of the moves, sorted."""
        return sorted({letter for moves in self.moves for letter in moves})


def determinised(nfa):
    """Return the DFA of the same language, by the subset construction."""
    letters = nfa.alphabet()
    first = nfa.closure([nfa.start])
    numbers = {first: 0}
    queue = [first]
    table = []
    for states in queue:
        row = {}
        for letter in letters:
            after = nfa.step(states, letter)
            if not after:
                continue
            if after not in numbers:
                numbers[after] = len(numbers)
                queue.append(after)
            row[letter] = numbers[after]
        table.append(row)
    final = {number for states, number in numbers.items() if nfa.final & states}
    return DFA(table, 0, final)
