"""Training: one loop over a recipe of parts. It starts an engine and never touches an environment."""
