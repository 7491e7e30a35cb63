import pytest
from graphwalk import Graph, GraphError, breadth_first, depth_first, distances, shortest_path, simple_paths

ROADS = [
    ("a", "b", 7),
    ("a", "c", 9),
    ("a", "f", 14),
    ("b", "c", 10),
    ("b", "d", 15),
    ("c", "d", 11),
    ("c", "f", 2),
    ("d", "e", 6),
    ("e", "f", 9),
]


@pytest.fixture
def roads():
    return Graph(ROADS, directed=False)


def test_breadth_first(roads):
    assert breadth_first(roads, "a") == ["a", "b", "c", "f", "d", "e"]


def test_depth_first(roads):
    assert depth_first(roads, "a") == ["a", "b", "c", "d", "e", "f"]


def test_walks_stay_where_edges_lead():
    graph = Graph([("a", "b"), ("c", "a")])
    assert breadth_first(graph, "a") == ["a", "b"]
    assert depth_first(graph, "b") == ["b"]


def test_distances(roads):
    assert distances(roads, "a") == {"a": 0, "b": 7, "c": 9, "f": 11, "d": 20, "e": 20}


def test_shortest_path(roads):
    assert shortest_path(roads, "a", "e") == (20, ["a", "c", "f", "e"])
    assert shortest_path(roads, "b", "b") == (0, ["b"])


def test_no_path():
    with pytest.raises(GraphError, match="no path"):
        shortest_path(Graph([("a", "b")]), "b", "a")


def test_negative_weights():
    graph = Graph([("s", "a", 4), ("s", "b", 5), ("b", "a", -3), ("a", "t", 1)])
    assert shortest_path(graph, "s", "t") == (3, ["s", "b", "a", "t"])
    assert distances(graph, "s")["a"] == 2


def test_negative_cycles():
    with pytest.raises(GraphError, match="cycle"):
        distances(Graph([("a", "b", 1), ("b", "a", -2)]), "a")


def test_simple_paths():
    graph = Graph([(1, 2), (2, 3), (1, 3), (3, 1), (3, 4)])
    assert simple_paths(graph, 1, 4) == [[1, 2, 3, 4], [1, 3, 4]]
    assert simple_paths(graph, 1, 4, most=2) == [[1, 3, 4]]
    assert simple_paths(graph, 4, 1) == []
