"""Grids of cells, addressed by row and column."""

STRAIGHT = ((-1, 0), (0, 1), (1, 0), (0, -1))
DIAGONAL = ((-1, -1), (-1, 1), (1, 1), (1, -1))


class Rectangle:
    """Rows and columns without contents."""

    def __init__(self, height, width):
        self.height = height
        self.width = width

    def __contains__(self, place):
        row, column = place
        return 0 <= row < self.height and 0 <= column < self.width

    def places(self):
        """Return all places, row by row."""
        return [(row, column) for row in range(self.height) for column in range(self.width)]

    def neighbours(self, place, diagonal=False):
        """Return the places beside a place, clockwise from above; diagonal ones follow."""
        steps = STRAIGHT + DIAGONAL if diagonal else STRAIGHT
        row, column = place
        near = [(row + down, column + right) for down, right in steps]
        return [other for other in near if other in self]

    def spiral(self):
        """Return all places clockwise from the upper left corner to the middle."""
        order = []
        top, left, bottom, right = 0, 0, self.height - 1, self.width - 1
        while top <= bottom and left <= right:
            order.extend((top, column) for column in range(left, right + 1))
            order.extend((row, right) for row in range(top + 1, bottom + 1))
            if top < bottom and left < right:
                order.extend((bottom, column) for column in range(right - 1, left - 1, -1))
                order.extend((row, left) for row in range(bottom - 1, top, -1))
            top, left, bottom, right = top + 1, left + 1, bottom - 1, right - 1
        return order

    def diagonals(self):
        """Return the places of each rising diagonal, from the upper left corner on."""
        lines = []
        for total in range(self.height + self.width - 1):
            first = min(total, self.height - 1)
            last = max(0, total - self.width + 1)
            lines.append([(row, total - row) for row in range(first, last - 1, -1)])
        return lines


class Grid(Rectangle):
    """Cells of any values."""

    def __init__(self, rows):
        self.rows = [list(row) for row in rows]
        super().__init__(len(self.rows), len(self.rows[0]) if self.rows else 0)

    def __getitem__(self, place):
        row, column = place
        return self.rows[row][column]

    def __setitem__(self, place, value):
        row, column = place
        self.rows[row][column] = value

    def __str__(self):
        return "\n".join("".join(map(str, row)) for row in self.rows)

    def turned(self, quarters=1):
        """Return the grid turned to the right by quarters of a circle."""
        rows = self.rows
        for _ in range(quarters % 4):
            rows = [list(column) for column in zip(*rows[::-1])]
        return Grid(rows)

    def region(self, start):
        """Return the places with the value of `start` that are connected to it."""
        value = self[start]
        region = {start}
        queue = [start]
        while queue:
            place = queue.pop()
            for other in self.neighbours(place):
                if other not in region and self[other] == value:
                    region.add(other)
                    queue.append(other)
        return region

    def regions(self):
        """Return the sizes of all regions by value, largest first."""
        seen = set()
        sizes = {}
        for place in self.places():
            if place not in seen:
                region = self.region(place)
                seen |= region
                sizes.setdefault(self[place], []).append(len(region))
        return {value: sorted(counts, reverse=True) for value, counts in sizes.items()}

    def count(self, place, value):
        """Return how many of the eight neighbours have a value."""
        return sum(self[other] == value for other in self.neighbours(place, diagonal=True))


def life(grid, alive="#", dead="."):
    """Return the next generation of Conway's game; nothing lives outside the grid."""
    rows = []
    for row in range(grid.height):
        line = []
        for column in range(grid.width):
            near = grid.count((row, column), alive)
            if grid[row, column] == alive:
                lives = near == 2 or near == 3
            else:
                lives = near == 3
            line.append(alive if lives else dead)
        rows.append(line)
    return Grid(rows)


def prefix_sums(rows):
    """Return a function (top, left, bottom, right) -> sum of that rectangle, ends excluded."""
    height, width = len(rows), len(rows[0])
    sums = [[0] * (width + 1) for _ in range(height + 1)]
    for row in range(height):
        for column in range(width):
            above, before, corner = sums[row][column + 1], sums[row + 1][column], sums[row][column]
            sums[row + 1][column + 1] = rows[row][column] + above + before - corner

    def total(top, left, bottom, right):
        return sums[bottom][right] - sums[top][right] - sums[bottom][left] + sums[top][left]

    return total
