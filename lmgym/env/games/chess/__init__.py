"""Chess: positions and legal moves, their notations, and the end of a game."""
