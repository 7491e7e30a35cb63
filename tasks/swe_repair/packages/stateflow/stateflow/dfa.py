"""Automata with one state at a time."""


class Automaton:
    """Something that accepts words."""

    def accepts(self, word):
        """Return True if a word belongs to the language."""
        raise NotImplementedError

    def language(self, letters, longest):
        """Return the accepted words up to a length, shortest first."""
        words = [""]
        accepted = []
        for word in words:
            if self.accepts(word):
                accepted.append(word)
            if len(word) < longest:
                words.extend(word + letter for letter in letters)
        return accepted


class DFA(Automaton):
    """A table: for each state, the next state by letter. Missing letters lead nowhere."""

    def __init__(self, table, start, final):
        self.table = [dict(row) for row in table]
        self.start = start
        self.final = set(final)

    def __len__(self):
        return len(self.table)

    def run(self, word):
        """Return the state after a word; None if there is no way."""
        state = self.start
        for letter in word:
            state = self.table[state].get(letter)
            if state is None:
                return None
        return state

    def accepts(self, word):
        """Return True if the word ends in a final state."""
        return self.run(word) in self.final

    def alphabet(self):
        """Return all letters of the table, sorted."""
        return sorted({letter for row in self.table for letter in row})

    def completed(self, letters):
        """Return a DFA in which every letter leads somewhere; a sink is added if one is needed."""
        sink = len(self.table)
        table = []
        needed = False
        for row in self.table:
            full = {}
            for letter in letters:
                if letter in row:
                    full[letter] = row[letter]
                else:
                    full[letter] = sink
                    needed = True
            table.append(full)
        if needed:
            table.append({letter: sink for letter in letters})
        return DFA(table, self.start, self.final)

    def complement(self, letters):
        """Return the DFA of all words over the letters that this one refuses."""
        full = self.completed(letters)
        others = set(range(len(full))) - full.final
        return DFA(full.table, full.start, others)

    def reachable(self):
        """Return the states that some word leads to, in the order of a breadth-first walk."""
        order = [self.start]
        for state in order:
            for letter in sorted(self.table[state]):
                target = self.table[state][letter]
                if target not in order:
                    order.append(target)
        return order


def minimised(dfa):
    """Return the smallest DFA of the same language, states numbered breadth first (Moore's refinement)."""
    letters = dfa.alphabet()
    full = dfa.completed(letters)
    states = full.reachable()
    group = {state: int(state in full.final) for state in states}
    count = len(set(group.values()))
    while True:
        signatures = {}
        refined = {}
        for state in states:
            signature = (group[state], *(group[full.table[state][letter]] for letter in letters))
            refined[state] = signatures.setdefault(signature, len(signatures))
        group = refined
        if len(signatures) == count:
            break
        count = len(signatures)
    table = [{} for _ in range(count)]
    for state in states:
        for letter in letters:
            table[group[state]][letter] = group[full.table[state][letter]]
    final = {group[state] for state in states if state in full.final}
    return without_sinks(DFA(table, group[full.start], final))


def without_sinks(dfa):
    """Return a DFA without the states from which no final state can be reached; the start stays."""
    alive = set(dfa.final)
    changed = True
    while changed:
        changed = False
        for state, row in enumerate(dfa.table):
            if state not in alive and any(target in alive for target in row.values()):
                alive.add(state)
                changed = True
    kept = [state for state in dfa.reachable() if state in alive or state == dfa.start]
    number = {state: index for index, state in enumerate(kept)}
    table = []
    for state in kept:
        row = dfa.table[state]
        table.append({letter: number[target] for letter, target in row.items() if target in number and target in alive})
    return DFA(table, number[dfa.start], {number[state] for state in dfa.final if state in number})


def combined(first, second, keep):
    """Return the product of two DFAs; `keep(a, b)` says from the two verdicts whether a word is accepted."""
    letters = sorted({*first.alphabet(), *second.alphabet()})
    left, right = first.completed(letters), second.completed(letters)
    begin = (left.start, right.start)
    numbers = {begin: 0}
    queue = [begin]
    table = []
    for a, b in queue:
        row = {}
        for letter in letters:
            after = (left.table[a][letter], right.table[b][letter])
            if after not in numbers:
                numbers[after] = len(numbers)
                queue.append(after)
            row[letter] = numbers[after]
        table.append(row)
    final = {number for (a, b), number in numbers.items() if keep(a in left.final, b in right.final)}
    return DFA(table, 0, final)


def shortest_word(dfa):
    """Return the first of the shortest accepted words; None if there is none."""
    words = {dfa.start: ""}
    queue = [dfa.start]
    for state in queue:
        if state in dfa.final:
            return words[state]
        for letter in sorted(dfa.table[state]):
            target = dfa.table[state][letter]
            if target not in words:
                words[target] = words[state] + letter
                queue.append(target)
    return None


def equivalent(first, second):
    """Return True if two DFAs accept the same words."""
    return shortest_word(combined(first, second, lambda a, b: a != b)) is None
