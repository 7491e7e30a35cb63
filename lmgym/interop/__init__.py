"""Tasks of lmgym in other libraries: OpenEnv, verifiers, Inspect, TRL. Each of these wants a venv of its own."""
