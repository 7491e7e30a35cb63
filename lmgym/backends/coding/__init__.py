"""Sandboxes of coding agents: their steps, their files and their patches."""
