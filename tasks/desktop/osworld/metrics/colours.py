"""OSWorld's metric of coloured words, and the difference of two colours that it uses."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmgym.tasks.desktop.osworld.metrics.docs import compare_docx_files, docx_file

RED, BLUE = (255, 0, 0), (0, 0, 255)
WHITE = (0.95047, 1.0, 1.08883)  # of the illuminant D65, for an observer of 2 degrees
TO_XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))


def evaluate_colored_words_in_tables(result: str | None, expected: str | None, *, threshold: float = 3.5) -> float:
    """Check that the texts agree and words in tables are red if they begin with a vowel, else blue."""
    document = docx_file(result)
    if document is None or not compare_docx_files(result, expected):
        return 0.0
    for cell in (cell for table in document.tables for row in table.rows for cell in row.cells):
        for run in (run for paragraph in cell.paragraphs for run in paragraph.runs):
            if run.text:
                colour = run.font.color.rgb
                wanted = RED if run.text[0].lower() in "aeiou" else BLUE
                if colour is None or difference(lab(colour), lab(wanted)) > threshold:
                    return 0.0
    return 1.0


def lab(colour: Sequence[int]) -> tuple[float, float, float]:
    """Return a colour of sRGB, 0 to 255 each, in CIELAB."""
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in (each / 255 for each in colour)]
    sums = [sum(a * b for a, b in zip(row, linear, strict=True)) for row in TO_XYZ]
    relative = [each / white for each, white in zip(sums, WHITE, strict=True)]
    x, y, z = (math.cbrt(each) if each > (6 / 29) ** 3 else each * (29 / 6) ** 2 / 3 + 4 / 29 for each in relative)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the CIEDE2000 difference of two colours in CIELAB (Sharma, Wu and Dalal 2005, equations 2 to 22)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_chroma = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    factor = 1.5 - math.sqrt(mean_chroma**7 / (mean_chroma**7 + 25**7)) / 2
    c1, c2 = math.hypot(a1 * factor, b1), math.hypot(a2 * factor, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * factor)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn, hue = h2 - h1, (h1 + h2) / 2
    if c1 * c2 == 0:
        turn, hue = 0.0, h1 + h2
    elif abs(turn) > 180:
        turn -= math.copysign(360, turn)
        hue += 180 if h1 + h2 < 360 else -180
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    weight = (
        1
        - 0.17 * math.cos(math.radians(hue - 30))
        + 0.24 * math.cos(math.radians(2 * hue))
        + 0.32 * math.cos(math.radians(3 * hue + 6))
        - 0.20 * math.cos(math.radians(4 * hue - 63))
    )
    lightness = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    saturation = (c2 - c1) / (1 + 0.045 * chroma)
    angle = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * weight)
    rotation = -2 * math.sqrt(chroma**7 / (chroma**7 + 25**7))
    rotation *= math.sin(math.radians(60 * math.exp(-(((hue - 275) / 25) ** 2))))
    return math.sqrt(lightness**2 + saturation**2 + angle**2 + rotation * saturation * angle)


METRICS = (evaluate_colored_words_in_tables,)
