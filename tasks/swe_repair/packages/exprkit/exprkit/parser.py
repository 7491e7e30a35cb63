"""Tokens to trees, by precedence climbing."""

from .lexer import SyntaxProblem, tokenize
from .nodes import Binary, Call, Name, Number, Unary

PRECEDENCE = {"==": 1, "!=": 1, "<": 2, ">": 2, "<=": 2, ">=": 2, "+": 3, "-": 3, "*": 4, "/": 4, "%": 4, "^": 6}
SIGN = 5


class Cursor:
    """A place in a list of tokens."""

    def __init__(self, tokens):
        self.tokens = tokens
        self.index = 0

    @property
    def current(self):
        """Token at the place."""
        return self.tokens[self.index]

    def advance(self):
        """Return the current token and go on."""
        token = self.current
        if token.kind != "end":
            self.index += 1
        return token

    def accept(self, text):
        """Go on and return True if the current token is this operator."""
        if self.current.kind == "operator" and self.current.text == text:
            self.index += 1
            return True
        return False

    def expect(self, text):
        """Go on behind an operator. Raises SyntaxProblem if there is another token."""
        if not self.accept(text):
            raise SyntaxProblem(f"expected {text!r}, got {self.current.text or 'the end'!r}", self.current.column)


class Parser(Cursor):
    """A cursor that makes trees."""

    def expression(self, minimum=1):
        """Return the tree of operators that bind at least as tightly as `minimum`."""
        left = self.operand()
        while True:
            token = self.current
            operator = "^" if token.text == "**" else token.text
            strength = PRECEDENCE.get(operator, 0) if token.kind == "operator" else 0
            if strength < minimum:
                return left
            self.advance()
            if operator == "^":
                right = self.expression(strength)
            else:
                right = self.expression(strength + 1)
            left = Binary(operator, left, right)

    def operand(self):
        """Return a number, a name, a call, a signed operand or a tree in parentheses."""
        token = self.advance()
        if token.kind == "number":
            plain = token.text.isdigit()
            return Number(int(token.text) if plain else float(token.text))
        if token.kind == "name":
            if self.accept("("):
                return Call(token.text, self.arguments())
            return Name(token.text)
        if token.text == "-" or token.text == "+":
            operand = self.expression(SIGN)
            return Unary("-", operand) if token.text == "-" else operand
        if token.text == "(":
            inside = self.expression()
            self.expect(")")
            return inside
        raise SyntaxProblem(f"unexpected {token.text or 'end'!r}", token.column)

    def arguments(self):
        """Return the arguments up to the closing parenthesis."""
        listed = []
        if self.accept(")"):
            return listed
        while True:
            listed.append(self.expression())
            if self.accept(")"):
                return listed
            self.expect(",")


def parse(text):
    """Return the tree of an expression. Raises SyntaxProblem with the column of the first problem."""
    parser = Parser(tokenize(text))
    tree = parser.expression()
    if parser.current.kind != "end":
        raise SyntaxProblem(f"unexpected {parser.current.text!r}", parser.current.column)
    return tree
