"""Experiments that compare algorithms: learning curves, and claims of the literature; run by `make curves`."""
