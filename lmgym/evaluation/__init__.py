"""A policy over a split: running, statistics, reports."""
