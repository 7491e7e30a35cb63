"""Graphs as adjacency dictionaries."""


class GraphError(Exception):
    """A question that a graph has no answer to."""


class NodeSet:
    """Nodes in the order in which they were added."""

    def __init__(self):
        self.adjacent = {}

    def __contains__(self, node):
        return node in self.adjacent

    def __len__(self):
        return len(self.adjacent)

    def __iter__(self):
        return iter(self.adjacent)

    def add_node(self, node):
        """Add a node; nothing happens if it is there."""
        if node not in self.adjacent:
            self.adjacent[node] = {}


class Graph(NodeSet):
    """A graph with at most one weighted edge between two nodes in each direction."""

    def __init__(self, edges=(), directed=True):
        super().__init__()
        self.directed = directed
        for edge in edges:
            self.add_edge(*edge)

    def add_edge(self, start, end, weight=1):
        """Add an edge or change its weight."""
        self.add_node(start)
        self.add_node(end)
        self.adjacent[start][end] = weight
        if not self.directed:
            self.adjacent[end][start] = weight

    def remove_edge(self, start, end):
        """Remove an edge. Raises GraphError if there is none."""
        try:
            del self.adjacent[start][end]
            if not self.directed and start != end:
                del self.adjacent[end][start]
        except KeyError as error:
            raise GraphError(f"no edge from {start!r} to {end!r}") from error

    def remove_node(self, node):
        """Remove a node and all its edges."""
        if node not in self.adjacent:
            raise GraphError(f"no node {node!r}")
        del self.adjacent[node]
        for neighbours in self.adjacent.values():
            neighbours.pop(node, None)

    def neighbours(self, node):
        """Return the nodes that one edge leads to."""
        if node not in self.adjacent:
            raise GraphError(f"no node {node!r}")
        return list(self.adjacent[node])

    def weight(self, start, end):
        """Return the weight of an edge. Raises GraphError if there is none."""
        try:
            return self.adjacent[start][end]
        except KeyError as error:
            raise GraphError(f"no edge from {start!r} to {end!r}") from error

    def edges(self):
        """Return (start, end, weight) of all edges; those of an undirected graph once."""
        listed = []
        seen = set()
        for start, neighbours in self.adjacent.items():
            for end, weight in neighbours.items():
                if self.directed or (end, start) not in seen:
                    listed.append((start, end, weight))
                    seen.add((start, end))
        return listed

    def degree(self, node):
        """Return the number of edges at a node; of a directed graph those that leave or enter it."""
        out = len(self.adjacent[node])
        if not self.directed:
            return out + (node in self.adjacent[node])
        return out + sum(1 for neighbours in self.adjacent.values() if node in neighbours)

    def reversed(self):
        """Return the graph with all edges turned round."""
        turned = Graph(directed=self.directed)
        for node in self:
            turned.add_node(node)
        for start, end, weight in self.edges():
            turned.add_edge(end, start, weight)
        return turned
