import pytest
from graphwalk import DisjointSets, Graph, GraphError, Tree, spanning_tree


def test_disjoint_sets():
    sets = DisjointSets("abc")
    assert sets.union("a", "b")
    assert not sets.union("b", "a")
    assert sets.find("a") == sets.find("b") != sets.find("c")
    assert sets.union("c", "d")
    assert sets.groups() == [["a", "b"], ["c", "d"]]


def test_set_sizes():
    sets = DisjointSets("abcd")
    sets.union("a", "b")
    sets.union("c", "a")
    assert sets.find("c") == sets.find("b") == "a"
    assert sets.size["a"] == 3


def test_spanning_tree():
    graph = Graph([("a", "b", 4), ("b", "c", 8), ("a", "c", 2), ("c", "d", 1)], directed=False)
    total, tree = spanning_tree(graph)
    assert total == 7
    assert sorted(tree.edges()) == [("a", "b", 4), ("a", "c", 2), ("c", "d", 1)]


def test_spanning_tree_keeps_lonely_nodes():
    graph = Graph(directed=False)
    graph.add_node("z")
    assert list(spanning_tree(graph)[1]) == ["z"]
    with pytest.raises(GraphError):
        spanning_tree(Graph())


FAMILY = {"b": "a", "c": "a", "d": "b", "e": "b", "f": "e"}


def test_ancestors_and_depth():
    tree = Tree(FAMILY)
    assert tree.root == "a"
    assert tree.ancestors("f") == ["f", "e", "b", "a"]
    assert [tree.depth(node) for node in "aef"] == [0, 2, 3]


def test_common_ancestor():
    tree = Tree(FAMILY)
    assert tree.common_ancestor("d", "f") == "b"
    assert tree.common_ancestor("c", "f") == "a"
    assert tree.common_ancestor("e", "f") == "e"


def test_distance_and_height():
    tree = Tree(FAMILY)
    assert tree.distance("d", "f") == 3
    assert tree.distance("f", "f") == 0
    assert tree.height() == 3
    assert tree.height("c") == 0
    assert tree.children("b") == ["d", "e"]


def test_two_roots():
    with pytest.raises(GraphError):
        Tree({"b": "a", "d": "c"})
