"""One file a published system, found by `lmgym train` by its name."""
