"""Walks and shortest paths."""

import heapq

from .graph import GraphError


def breadth_first(graph, start):
    """Return the nodes that can be reached, nearest first."""
    order = [start]
    seen = {start}
    for node in order:
        for neighbour in graph.neighbours(node):
            if neighbour not in seen:
                seen.add(neighbour)
                order.append(neighbour)
    return order


def depth_first(graph, start):
    """Return the nodes in the order in which a depth-first walk meets them."""
    order = []
    seen = set()
    stack = [start]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        order.append(node)
        stack.extend(reversed(graph.neighbours(node)))
    return order


def traced(previous, end):
    """Return the path to `end` in a dictionary of predecessors."""
    path = [end]
    while previous[path[-1]] is not None:
        path.append(previous[path[-1]])
    return path[::-1]


def dijkstra(graph, start):
    """Return the distances to all nodes that can be reached and the predecessors on shortest paths."""
    distance = {start: 0}
    previous = {start: None}
    done = set()
    queue = [(0, 0, start)]
    count = 1
    while queue:
        length, _, node = heapq.heappop(queue)
        if node in done:
            continue
        done.add(node)
        for neighbour in graph.neighbours(node):
            weight = graph.weight(node, neighbour)
            if weight < 0:
                raise GraphError("weights must not be negative; use bellman_ford")
            total = length + weight
            if neighbour not in distance or total < distance[neighbour]:
                distance[neighbour] = total
                previous[neighbour] = node
                heapq.heappush(queue, (total, count, neighbour))
                count += 1
    return distance, previous


def bellman_ford(graph, start):
    """Return distances and predecessors as `dijkstra` does, for any weights.

    Raises GraphError if a cycle of negative length can be reached.
    """
    distance = {start: 0}
    previous = {start: None}
    for round_number in range(len(graph)):
        changed = False
        for first, last, weight in directed_edges(graph):
            if first in distance and distance[first] + weight < distance.get(last, float("inf")):
                distance[last] = distance[first] + weight
                previous[last] = first
                changed = True
        if not changed:
            break
        if round_number == len(graph) - 1:
            raise GraphError("there is a cycle of negative length")
    return distance, previous


def directed_edges(graph):
    """Return all edges of a graph, those of an undirected graph in both directions."""
    return [(start, end, weight) for start, ends in graph.adjacent.items() for end, weight in ends.items()]


def distances(graph, start):
    """Return the distance of every node that can be reached."""
    if any(weight < 0 for _, _, weight in graph.edges()):
        return bellman_ford(graph, start)[0]
    return dijkstra(graph, start)[0]


def shortest_path(graph, start, end):
    """Return length and nodes of a shortest path. Raises GraphError if there is no path."""
    if any(weight < 0 for _, _, weight in graph.edges()):
        distance, previous = bellman_ford(graph, start)
    else:
        distance, previous = dijkstra(graph, start)
    if end not in distance:
        raise GraphError(f"no path from {start!r} to {end!r}")
    return distance[end], traced(previous, end)


def simple_paths(graph, start, end, most=None):
    """Return all paths that visit no node twice, of at most `most` edges, in the order of the neighbours."""
    paths = []

    def extend(path):
        if path[-1] == end:
            paths.append(list(path))
            return
        if most is not None and len(path) - 1 >= most:
            return
        for neighbour in graph.neighbours(path[-1]):
            if neighbour not in path:
                extend([*path, neighbour])

    extend([start])
    return paths
