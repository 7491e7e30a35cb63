"""Ready-made parts of recipes, one file for each kind."""
