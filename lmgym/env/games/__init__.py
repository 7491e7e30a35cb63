"""Games with a second seat: positions, solvers, opponents, questions, and the environments that tasks build on."""
