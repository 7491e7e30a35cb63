"""One file an algorithm; `recipes/` one file a published system."""

if __name__ != "lmgym.baselines":
    raise ImportError(f"import this package as lmgym.baselines, not as {__name__}")
