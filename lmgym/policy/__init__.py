"""The policy layer: tokens in, tokens out. It knows no environment."""
