"""Trees of expressions. Nodes are never changed once made."""


class Node:
    """A part of an expression."""

    fields = ()

    def children(self):
        """Return the nodes right below."""
        return ()

    def __eq__(self, other):
        if type(other) is not type(self):
            return False
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __hash__(self):
        return hash((type(self).__name__, *(getattr(self, name) for name in self.fields)))

    def __repr__(self):
        inside = ", ".join(repr(getattr(self, name)) for name in self.fields)
        return f"{type(self).__name__}({inside})"

    def size(self):
        """Return the number of nodes of the tree."""
        return 1 + sum(child.size() for child in self.children())


class Number(Node):
    """A constant."""

    fields = ("value",)

    def __init__(self, value):
        self.value = value


class Name(Node):
    """A variable."""

    fields = ("name",)

    def __init__(self, name):
        self.name = name


class Unary(Node):
    """A sign in front of an operand."""

    fields = ("operator", "operand")

    def __init__(self, operator, operand):
        self.operator = operator
        self.operand = operand

    def children(self):
        """Return the operand."""
        return (self.operand,)


class Binary(Node):
    """An operator between two operands."""

    fields = ("operator", "left", "right")

    def __init__(self, operator, left, right):
        self.operator = operator
        self.left = left
        self.right = right

    def children(self):
        """Return both operands."""
        return (self.left, self.right)


class Call(Node):
    """A function of some arguments."""

    fields = ("function", "arguments")

    def __init__(self, function, arguments):
        self.function = function
        self.arguments = tuple(arguments)

    def children(self):
        """Return the arguments."""
        return self.arguments
