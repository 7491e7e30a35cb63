import pytest
from graphwalk import Graph, GraphError


def test_nodes_keep_their_order():
    graph = Graph([("b", "a"), ("c", "b")])
    assert list(graph) == ["b", "a", "c"]
    assert len(graph) == 3
    assert "c" in graph


def test_undirected_edges_go_both_ways():
    graph = Graph([("a", "b", 3)], directed=False)
    assert graph.weight("b", "a") == 3
    assert graph.edges() == [("a", "b", 3)]


def test_directed_edges_go_one_way():
    graph = Graph([("a", "b", 3), ("b", "a", 4)])
    assert graph.edges() == [("a", "b", 3), ("b", "a", 4)]
    graph.remove_edge("a", "b")
    assert graph.neighbours("a") == []
    assert graph.neighbours("b") == ["a"]


def test_missing_edges_and_nodes():
    graph = Graph([("a", "b")])
    with pytest.raises(GraphError):
        graph.weight("b", "a")
    with pytest.raises(GraphError):
        graph.remove_edge("b", "a")
    with pytest.raises(GraphError):
        graph.neighbours("x")
    with pytest.raises(GraphError):
        graph.remove_node("x")


def test_removed_nodes_take_their_edges():
    graph = Graph([("a", "b"), ("b", "c"), ("c", "a")])
    graph.remove_node("b")
    assert graph.edges() == [("c", "a", 1)]


def test_undirected_removal():
    graph = Graph([("a", "b"), ("a", "a")], directed=False)
    graph.remove_edge("b", "a")
    graph.remove_edge("a", "a")
    assert graph.edges() == []


def test_degrees():
    directed = Graph([("a", "b"), ("c", "a"), ("a", "a")])
    assert directed.degree("a") == 4
    assert Graph([("a", "b"), ("a", "a")], directed=False).degree("a") == 3


def test_reversed_keeps_lonely_nodes():
    graph = Graph([("a", "b", 7)])
    graph.add_node("z")
    turned = graph.reversed()
    assert turned.edges() == [("b", "a", 7)]
    assert list(turned) == ["a", "b", "z"]
