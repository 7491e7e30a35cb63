"""Spanning trees and rooted trees."""

from .graph import Graph, GraphError


class DisjointSets:
    """Sets that can be united (union-find with path halving)."""

    def __init__(self, items=()):
        self.parent = {item: item for item in items}
        self.size = {item: 1 for item in items}

    def find(self, item):
        """Return the representative of the set that holds an item; new items are sets of their own."""
        if item not in self.parent:
            self.parent[item] = item
            self.size[item] = 1
        while self.parent[item] != item:
            self.parent[item] = self.parent[self.parent[item]]
            item = self.parent[item]
        return item

    def union(self, first, second):
        """Unite two sets; return False if they were one already."""
        a, b = self.find(first), self.find(second)
        if a == b:
            return False
        if self.size[a] < self.size[b]:
            a, b = b, a
        self.parent[b] = a
        self.size[a] += self.size[b]
        return True

    def groups(self):
        """Return the sets as lists, in the order of their first items."""
        members = {}
        for item in self.parent:
            members.setdefault(self.find(item), []).append(item)
        return list(members.values())


def spanning_tree(graph):
    """Return (total weight, graph) of a minimum spanning forest of an undirected graph (Kruskal)."""
    if graph.directed:
        raise GraphError("spanning trees are defined for undirected graphs")
    sets = DisjointSets(graph)
    tree = Graph(directed=False)
    for node in graph:
        tree.add_node(node)
    total = 0
    for start, end, weight in sorted(graph.edges(), key=lambda edge: edge[2]):
        if sets.union(start, end):
            tree.add_edge(start, end, weight)
            total += weight
    return total, tree


class Tree:
    """A rooted tree, given by the parent of every node but the root."""

    def __init__(self, parents):
        self.parents = dict(parents)
        roots = {parent for parent in self.parents.values() if parent not in self.parents}
        if len(roots) != 1:
            raise GraphError(f"a tree has one root, not {len(roots)}")
        self.root = roots.pop()

    def ancestors(self, node):
        """Return a node and all above it, up to the root."""
        line = [node]
        while line[-1] != self.root:
            line.append(self.parents[line[-1]])
        return line

    def depth(self, node):
        """Return the number of edges between a node and the root."""
        return len(self.ancestors(node)) - 1

    def common_ancestor(self, first, second):
        """Return the lowest node that is above or equal to both."""
        above = set(self.ancestors(first))
        for node in self.ancestors(second):
            if node in above:
                return node
        raise GraphError("nodes of different trees")

    def distance(self, first, second):
        """Return the number of edges between two nodes."""
        meeting = self.common_ancestor(first, second)
        return self.depth(first) + self.depth(second) - 2 * self.depth(meeting)

    def children(self, node):
        """Return the nodes whose parent a node is."""
        return [child for child, parent in self.parents.items() if parent == node]

    def height(self, node=None):
        """Return the number of edges on the longest way down from a node, by default from the root."""
        start = self.root if node is None else node
        return max((1 + self.height(child) for child in self.children(start)), default=0)
