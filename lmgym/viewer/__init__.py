"""Recorded episodes in a browser: `lmgym view`, and one file that anybody can open."""
