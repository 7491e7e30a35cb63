"""Policies that somebody else computes: HTTP endpoints and programs."""
