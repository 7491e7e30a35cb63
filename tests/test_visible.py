"""Text of strangers on a terminal."""

from __future__ import annotations

from lmgym.visible import visible, visible_lines


def test_controls_are_escaped_and_the_layout_of_pages_and_files_stays() -> None:
    assert visible("a\tb\u3000\x1b[2J\u202e\n") == "a\\tb\\u3000\\x1b[2J\\u202e\\n"
    assert visible_lines("\t[12] link\u00a0\u3000x\r\n\x1b[2J\u202e") == "\t[12] link\u00a0\u3000x\\r\n\\x1b[2J\\u202e"
