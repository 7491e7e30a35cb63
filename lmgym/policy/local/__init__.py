"""Policies that run in this process: sampling, scoring and the forward pass."""
