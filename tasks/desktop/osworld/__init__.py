"""OSWorld's own tasks: its files, its session of setup and checks, its metrics."""
