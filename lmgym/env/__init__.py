"""The environment layer: text (and pictures) in, text out. It knows no token and no model."""
