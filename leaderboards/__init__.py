"""Schema, entries and the static site of the leaderboard."""

if __name__ != "lmgym.leaderboards":
    raise ImportError(f"import this package as lmgym.leaderboards, not as {__name__}")
