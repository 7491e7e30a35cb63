from matgrid import Grid, life, prefix_sums


def test_neighbours():
    grid = Grid(["abc", "def"])
    assert grid.neighbours((0, 0)) == [(0, 1), (1, 0)]
    assert grid.neighbours((1, 1)) == [(0, 1), (1, 2), (1, 0)]
    assert len(grid.neighbours((0, 1), diagonal=True)) == 5
    assert (2, 0) not in grid


def test_spiral():
    grid = Grid(["abc", "def", "ghi"])
    assert "".join(grid[place] for place in grid.spiral()) == "abcfihgde"
    wide = Grid(["abcd"])
    assert "".join(wide[place] for place in wide.spiral()) == "abcd"
    tall = Grid(["a", "b", "c"])
    assert "".join(tall[place] for place in tall.spiral()) == "abc"


def test_diagonals():
    grid = Grid(["abc", "def"])
    assert ["".join(grid[place] for place in line) for line in grid.diagonals()] == ["a", "db", "ec", "f"]


def test_turned():
    grid = Grid(["ab", "cd", "ef"])
    assert str(grid.turned()) == "eca\nfdb"
    assert str(grid.turned(2)) == "fe\ndc\nba"
    assert str(grid.turned(-1)) == str(grid.turned(3)) == "bdf\nace"


def test_regions():
    grid = Grid(["..#", "#.#", "##."])
    assert grid.region((0, 0)) == {(0, 0), (0, 1), (1, 1)}
    assert grid.regions() == {".": [3, 1], "#": [3, 2]}


def test_cells_can_be_set():
    grid = Grid(["..", ".."])
    grid[1, 0] = "#"
    assert str(grid) == "..\n#."
    assert grid.count((0, 1), "#") == 1


def test_life():
    blinker = Grid([".....", "..#..", "..#..", "..#..", "....."])
    turned = life(blinker)
    assert str(turned) == ".....\n.....\n.###.\n.....\n....."
    assert str(life(turned)) == str(blinker)
    block = Grid(["##", "##"])
    assert str(life(block)) == "##\n##"


def test_crowds_die():
    assert str(life(Grid(["###", "###", "###"]))) == "#.#\n...\n#.#"


def test_prefix_sums():
    total = prefix_sums([[1, 2, 3], [4, 5, 6]])
    assert total(0, 0, 2, 3) == 21
    assert total(0, 1, 1, 3) == 5
    assert total(1, 1, 2, 2) == 5
    assert total(1, 1, 1, 3) == 0
