"""Games of two players: positions, exact solvers, opponents, and the environment that tasks build on."""
