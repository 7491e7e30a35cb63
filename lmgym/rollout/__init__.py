"""The rollout engine: the only place that sees both an environment and a policy."""
