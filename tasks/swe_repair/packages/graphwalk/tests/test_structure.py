import pytest
from graphwalk import Graph, GraphError, bipartition, bridges, components, strong_components, topological_order


def test_components_ignore_directions():
    graph = Graph([("x", "y"), ("a", "b"), ("c", "b")])
    graph.add_node("z")
    assert components(graph) == [["a", "b", "c"], ["x", "y"], ["z"]]


def test_topological_order():
    graph = Graph([("shirt", "tie"), ("tie", "jacket"), ("trousers", "shoes"), ("trousers", "jacket")])
    assert topological_order(graph) == ["shirt", "trousers", "tie", "shoes", "jacket"]


def test_cycles_have_no_order():
    with pytest.raises(GraphError, match="cycle"):
        topological_order(Graph([(1, 2), (2, 3), (3, 2)]))


def test_strong_components():
    graph = Graph([(1, 2), (2, 3), (3, 1), (3, 4), (4, 5), (5, 4), (6, 5)])
    assert strong_components(graph) == [{4, 5}, {1, 2, 3}, {6}]


def test_strong_components_of_a_line():
    assert strong_components(Graph([(1, 2), (2, 3)])) == [{3}, {2}, {1}]


def test_strong_components_with_a_cross_edge():
    assert strong_components(Graph([(1, 2), (1, 3), (3, 2)])) == [{2}, {3}, {1}]


def test_bridges():
    graph = Graph([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")], directed=False)
    assert bridges(graph) == [("d", "e"), ("c", "d")]


def test_bridges_of_a_directed_graph():
    with pytest.raises(GraphError):
        bridges(Graph([("a", "b")]))


def test_bipartition():
    square = Graph([(1, 2), (2, 3), (3, 4), (4, 1)], directed=False)
    square.add_edge("x", "y")
    assert bipartition(square) == ({1, 3, "x"}, {2, 4, "y"})
    square.add_edge(1, 3)
    assert bipartition(square) is None
