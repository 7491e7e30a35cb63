"""A viewer of recorded episodes: `lmgym view`, or a single HTML file."""
