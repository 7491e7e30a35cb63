"""Names of keys: pyautogui's, xdotool's and those of the published computer-use tools, as X keysyms."""

from __future__ import annotations

from functools import cache

NAMES = {  # in lower case, to X's names
    "enter": "Return",
    "return": "Return",
    "\n": "Return",
    "\r": "Return",
    "\t": "Tab",
    "esc": "Escape",
    "escape": "Escape",
    "backspace": "BackSpace",
    "back": "BackSpace",
    "del": "Delete",
    "delete": "Delete",
    "insert": "Insert",
    "tab": "Tab",
    "space": "space",
    "spacebar": "space",
    "ctrl": "Control_L",
    "control": "Control_L",
    "ctrlleft": "Control_L",
    "ctrlright": "Control_R",
    "shift": "Shift_L",
    "shiftleft": "Shift_L",
    "shiftright": "Shift_R",
    "alt": "Alt_L",
    "altleft": "Alt_L",
    "altright": "Alt_R",
    "option": "Alt_L",
    "win": "Super_L",
    "winleft": "Super_L",
    "winright": "Super_R",
    "super": "Super_L",
    "meta": "Super_L",
    "cmd": "Super_L",
    "command": "Super_L",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "arrowup": "Up",
    "arrowdown": "Down",
    "arrowleft": "Left",
    "arrowright": "Right",
    "home": "Home",
    "end": "End",
    "pageup": "Prior",
    "page_up": "Prior",
    "pgup": "Prior",
    "pagedown": "Next",
    "page_down": "Next",
    "pgdn": "Next",
    "capslock": "Caps_Lock",
    "numlock": "Num_Lock",
    "scrolllock": "Scroll_Lock",
    "printscreen": "Print",
    "prtsc": "Print",
    "prtscr": "Print",
    "pause": "Pause",
    "apps": "Menu",
    "menu": "Menu",
    "add": "KP_Add",
    "subtract": "KP_Subtract",
    "multiply": "KP_Multiply",
    "divide": "KP_Divide",
    "decimal": "KP_Decimal",
    "plus": "plus",
    "minus": "minus",
    **{f"num{digit}": f"KP_{digit}" for digit in range(10)},
}


@cache
def keysym(name: str) -> int:
    """Return the keysym of a key's name or of a single character; 0 if there is none."""
    from Xlib import XK

    if len(name) == 1 and name not in NAMES:
        return character_keysym(name)
    translated = NAMES.get(name.lower(), name)
    for candidate in (translated, translated.capitalize(), translated.lower(), translated.upper()):
        if symbol := XK.string_to_keysym(candidate):
            return int(symbol)
    return 0


def character_keysym(character: str) -> int:
    """Return the keysym that types a character: Latin-1's own code, else the Unicode range."""
    from Xlib import XK

    if character in "\n\r\t":
        return int(XK.string_to_keysym(NAMES[character]))
    code = ord(character)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return 0
    return code if code < 0x100 else 0x1000000 | code


def is_modifier(symbol: int) -> bool:
    """Return True for Shift, Control, Alt, Super and the like."""
    return 0xFFE1 <= symbol <= 0xFFEE


def is_window_key(symbol: int) -> bool:
    """Return True for Meta, Alt and Super, to which the window manager answers."""
    return 0xFFE7 <= symbol <= 0xFFEC
