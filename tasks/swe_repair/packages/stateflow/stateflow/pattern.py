"""Regular expressions as automata (Thompson's construction)."""

from .nfa import NFA, determinised

SPECIAL = "|*+?()[]{}.\\"


class PatternError(ValueError):
    """A pattern that cannot be read; the message has the index."""


class Compiler:
    """Reads a pattern from left to right and builds pieces, pairs of a first and a last state."""

    def __init__(self, pattern, alphabet):
        self.pattern = pattern
        self.alphabet = alphabet
        self.index = 0
        self.nfa = NFA()

    def peek(self):
        """Return the next character, "" at the end."""
        return self.pattern[self.index : self.index + 1]

    def fail(self, reason):
        """Raise PatternError for the present index."""
        raise PatternError(f"{reason} at index {self.index} of {self.pattern!r}")

    def single(self, letters):
        """Return a piece for one of some letters."""
        first, last = self.nfa.new_state(), self.nfa.new_state()
        for letter in letters:
            self.nfa.connect(first, letter, last)
        return first, last

    def empty(self):
        """Return a piece for the empty word."""
        first, last = self.nfa.new_state(), self.nfa.new_state()
        self.nfa.connect(first, None, last)
        return first, last

    def alternatives(self):
        """Return the piece of branches separated by bars."""
        pieces = [self.sequence()]
        while self.peek() == "|":
            self.index += 1
            pieces.append(self.sequence())
        if len(pieces) == 1:
            return pieces[0]
        first, last = self.nfa.new_state(), self.nfa.new_state()
        for start, end in pieces:
            self.nfa.connect(first, None, start)
            self.nfa.connect(end, None, last)
        return first, last

    def sequence(self):
        """Return the piece of parts that follow each other."""
        whole = self.empty()
        while self.peek() and self.peek() not in "|)":
            part = self.repeated()
            self.nfa.connect(whole[1], None, part[0])
            whole = (whole[0], part[1])
        return whole

    def repeated(self):
        """Return the piece of an atom with its repetitions."""
        begin = self.index
        piece = self.atom()
        end = self.index
        while self.peek() and self.peek() in "*+?{":
            mark = self.peek()
            self.index += 1
            if mark == "{":
                fewest, most = self.bounds()
                piece = self.times(begin, end, fewest, most)
            else:
                piece = self.loop(piece, skip=mark in "*?", again=mark in "*+")
        return piece

    def loop(self, piece, skip, again):
        """Return a piece that may be left out, or repeated, or both."""
        first, last = self.nfa.new_state(), self.nfa.new_state()
        self.nfa.connect(first, None, piece[0])
        self.nfa.connect(piece[1], None, last)
        if skip:
            self.nfa.connect(first, None, last)
        if again:
            self.nfa.connect(piece[1], None, piece[0])
        return first, last

    def bounds(self):
        """Return fewest and most repetitions of a bound; most is None if it is open."""
        closing = self.pattern.find("}", self.index)
        if closing < 0:
            self.fail("missing }")
        low, comma, high = self.pattern[self.index : closing].partition(",")
        if not low.isdigit() or (high and not high.isdigit()):
            self.fail("bad bounds")
        self.index = closing + 1
        fewest = int(low)
        most = (int(high) if high else None) if comma else fewest
        if most is not None and most < fewest:
            self.fail("bounds in the wrong order")
        return fewest, most

    def times(self, begin, end, fewest, most):
        """Return the atom between two indices, repeated within bounds; it is read anew for every copy."""
        after = self.index
        whole = self.empty()
        count = fewest + 1 if most is None else most
        for number in range(count):
            self.index = begin
            part = self.atom()
            if number >= fewest:
                part = self.loop(part, skip=True, again=most is None)
            self.nfa.connect(whole[1], None, part[0])
            whole = (whole[0], part[1])
        self.index = after
        return whole

    def atom(self):
        """Return the piece of a letter, a class, a dot or a group."""
        character = self.peek()
        if character and character in "*+?{":
            self.fail(f"nothing to repeat before {character!r}")
        self.index += 1
        if character == "(":
            piece = self.alternatives()
            if self.peek() != ")":
                self.fail("missing )")
            self.index += 1
            return piece
        if character == "[":
            return self.single(self.letters())
        if character == ".":
            return self.single(self.alphabet)
        if character == "\\":
            character = self.peek()
            if not character or character not in SPECIAL:
                self.fail("bad escape")
            self.index += 1
        elif character in SPECIAL:
            self.fail(f"unexpected {character!r}")
        return self.single(character)

    def letters(self):
        """Return the letters of a class up to its closing bracket; a leading ^ means all others."""
        negated = self.peek() == "^"
        if negated:
            self.index += 1
        closing = self.pattern.find("]", self.index)
        if closing < 0:
            self.fail("missing ]")
        body = self.pattern[self.index : closing]
        listed = set()
        index = 0
        while index < len(body):
            if body[index + 1 : index + 2] == "-" and index + 2 < len(body):
                listed.update(chr(code) for code in range(ord(body[index]), ord(body[index + 2]) + 1))
                index += 3
            else:
                listed.add(body[index])
                index += 1
        self.index = closing + 1
        return sorted(set(self.alphabet) - listed) if negated else sorted(listed)


def compile_pattern(pattern, alphabet="abcdefghijklmnopqrstuvwxyz0123456789"):
    """Return a DFA that accepts the words that match a pattern as a whole."""
    compiler = Compiler(pattern, alphabet)
    first, last = compiler.alternatives()
    if compiler.index < len(pattern):
        compiler.fail("unexpected )")
    compiler.nfa.connect(compiler.nfa.start, None, first)
    compiler.nfa.final.add(last)
    return determinised(compiler.nfa)
