"""Graphs and walks over them."""

from .graph import Graph, GraphError
from .search import breadth_first, depth_first, distances, shortest_path, simple_paths
from .structure import bipartition, bridges, components, strong_components, topological_order
from .trees import DisjointSets, Tree, spanning_tree

__all__ = [
    "DisjointSets",
    "Graph",
    "GraphError",
    "Tree",
    "bipartition",
    "breadth_first",
    "bridges",
    "components",
    "depth_first",
    "distances",
    "shortest_path",
    "simple_paths",
    "spanning_tree",
    "strong_components",
    "topological_order",
]
