"""Stock parts of recipes, one file a kind."""
