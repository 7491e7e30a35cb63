"""Parts of a graph: components, orders, cuts."""

from .graph import GraphError
from .search import breadth_first


def components(graph):
    """Return the connected components, edges taken as undirected; larger ones first."""
    both = graph.reversed()
    for start, end, weight in graph.edges():
        both.add_edge(start, end, weight)
    parts = []
    seen = set()
    for node in graph:
        if node not in seen:
            part = breadth_first(both, node)
            seen.update(part)
            parts.append(part)
    return sorted(parts, key=len, reverse=True)


def topological_order(graph):
    """Return the nodes so that every edge leads forward. Raises GraphError for a cycle."""
    entering = {node: 0 for node in graph}
    for _, end, _ in graph.edges():
        entering[end] += 1
    ready = [node for node, count in entering.items() if count == 0]
    order = []
    for node in ready:
        order.append(node)
        for neighbour in graph.neighbours(node):
            entering[neighbour] -= 1
            if entering[neighbour] == 0:
                ready.append(neighbour)
    if len(order) < len(graph):
        raise GraphError("the graph has a cycle")
    return order


def strong_components(graph):
    """Return the sets of nodes that reach each other, in the order in which their last nodes finish (Tarjan)."""
    index = {}
    low = {}
    stack = []
    parts = []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for neighbour in graph.neighbours(node):
            if neighbour not in index:
                visit(neighbour)
                low[node] = min(low[node], low[neighbour])
            elif neighbour in stack:
                low[node] = min(low[node], index[neighbour])
        if low[node] == index[node]:
            part = set()
            while node not in part:
                part.add(stack.pop())
            parts.append(part)

    for node in graph:
        if node not in index:
            visit(node)
    return parts


def bridges(graph):
    """Return the edges of an undirected graph whose removal disconnects something."""
    if graph.directed:
        raise GraphError("bridges are defined for undirected graphs")
    order = {}
    low = {}
    cuts = []

    def visit(node, parent):
        order[node] = low[node] = len(order)
        for neighbour in graph.neighbours(node):
            if neighbour == parent:
                continue
            if neighbour in order:
                low[node] = min(low[node], order[neighbour])
            else:
                visit(neighbour, node)
                low[node] = min(low[node], low[neighbour])
                if low[neighbour] > order[node]:
                    cuts.append((node, neighbour))

    for node in graph:
        if node not in order:
            visit(node, None)
    return cuts


def bipartition(graph):
    """Return two sets such that every edge leads from one to the other; None if there are none."""
    colour = {}
    for first in graph:
        if first in colour:
            continue
        colour[first] = 0
        queue = [first]
        for node in queue:
            for neighbour in graph.neighbours(node):
                if neighbour not in colour:
                    colour[neighbour] = 1 - colour[node]
                    queue.append(neighbour)
                elif colour[neighbour] == colour[node]:
                    return None
    left = {node for node in graph if colour[node] == 0}
    return left, set(graph) - left
