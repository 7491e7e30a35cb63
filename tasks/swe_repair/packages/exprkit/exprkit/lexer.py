"""Text to tokens."""

OPERATORS = ("**", "<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "^", "(", ")", ",", "<", ">", "?", ":")


class SyntaxProblem(ValueError):
    """A text that is not an expression; `column` counts from 1."""

    def __init__(self, message, column):
        super().__init__(f"{message} at column {column}")
        self.column = column


class Token:
    """A piece of text: kind "number", "name", "operator" or "end"."""

    def __init__(self, kind, text, column):
        self.kind = kind
        self.text = text
        self.column = column

    def __eq__(self, other):
        return isinstance(other, Token) and (self.kind, self.text) == (other.kind, other.text)

    def __repr__(self):
        return f"{self.kind}:{self.text}"


def number_end(text, start):
    """Return the index behind a number that begins at `start`: digits, a fraction, an exponent."""
    end = start
    while end < len(text) and text[end].isdigit():
        end += 1
    if end < len(text) and text[end] == ".":
        end += 1
        while end < len(text) and text[end].isdigit():
            end += 1
    if end < len(text) and text[end] in "eE":
        digits = end + 1
        if digits < len(text) and text[digits] in "+-":
            digits += 1
        if digits < len(text) and text[digits].isdigit():
            while digits < len(text) and text[digits].isdigit():
                digits += 1
            end = digits
    return end


def tokenize(text):
    """Return the tokens of a text, closed by one of kind "end". Raises SyntaxProblem for a foreign character."""
    tokens = []
    index = 0
    while index < len(text):
        character = text[index]
        if character.isspace():
            index += 1
            continue
        start = index
        if character.isdigit() or (character == "." and text[index + 1 : index + 2].isdigit()):
            index = number_end(text, start)
            kind = "number"
        elif character.isalpha() or character == "_":
            while index < len(text) and (text[index].isalnum() or text[index] == "_"):
                index += 1
            kind = "name"
        else:
            for operator in OPERATORS:
                if text.startswith(operator, start):
                    index = start + len(operator)
                    break
            else:
                raise SyntaxProblem(f"unexpected {character!r}", start + 1)
            kind = "operator"
        tokens.append(Token(kind, text[start:index], start + 1))
    tokens.append(Token("end", "", len(text) + 1))
    return tokens
