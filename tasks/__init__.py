"""One folder a task. Always imported as `lmgym.tasks`, so that a class has one identity."""

if __name__ != "lmgym.tasks":
    raise ImportError(f"import this package as lmgym.tasks, not as {__name__}")
