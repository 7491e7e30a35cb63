"""Playwright's names for the keys of a US keyboard."""

from __future__ import annotations

import string

MODIFIERS = ("Shift", "Control", "Alt", "Meta")
PAD = ("Divide", "Multiply", "Subtract", "Add", "Decimal", "Enter", *string.digits)
SIGNS = ("Backquote", "Minus", "Equal", "Backslash", "BracketLeft", "BracketRight", "Semicolon", "Quote", "Comma")
MOVING = ("PageUp", "PageDown", "Home", "End", "ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown")
OTHERS = (
    *("Escape", "Backspace", "Tab", "CapsLock", "Enter", "Space", "AltGraph", "ContextMenu", "PrintScreen"),
    *("ScrollLock", "Pause", "Insert", "Delete", "NumLock", "AudioVolumeMute", "AudioVolumeDown", "AudioVolumeUp"),
    *("MediaTrackNext", "MediaTrackPrevious", "MediaPlayPause"),
)
KEYS = frozenset(
    {
        *(letter for letter in string.printable if letter.isprintable()),
        *("\n", "\r"),
        *(f"F{number}" for number in range(1, 13)),
        *(f"Digit{digit}" for digit in string.digits),
        *(f"Key{letter}" for letter in string.ascii_uppercase),
        *(f"Numpad{name}" for name in PAD),
        *(f"{name}{side}" for name in MODIFIERS for side in ("", "Left", "Right")),
        *("ControlOrMeta", "Period", "Slash", *SIGNS, *MOVING, *OTHERS),
    }
)


def unknown(combination: str) -> str | None:
    """Return the first part of a combination such as "Control+a" that is not a key, or None."""
    parts = [""]
    for letter in combination:
        if letter == "+" and parts[-1]:
            parts.append("")
        else:
            parts[-1] += letter
    return next((part for part in parts if part not in KEYS), None)
