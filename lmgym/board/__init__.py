"""The leaderboard: entries, their verification by replay, marks, history and the static site."""
