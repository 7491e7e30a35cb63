"""A client of one X display: the frame buffer, input by XTEST, windows, and damage."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.desktop.keys import character_keysym, is_modifier
from lmgym.errors import BackendError

FRAME_BUFFER = "Xvfb_screen0"  # in Xvfb's -fbdir, in the format of xwd
XWD_WORDS = 25  # of the header: big-endian, 32 bits
POLL = 0.03  # seconds between two looks; each makes the X server work
BUTTONS = {"left": 1, "middle": 2, "right": 3}
WHEEL = {"up": 4, "down": 5, "left": 6, "right": 7}
_CONNECTING = threading.Lock()
Result = TypeVar("Result")


@dataclass(frozen=True)
class AppWindow:
    """A top-level window; its place is that of its contents, in pixels."""

    title: str
    program: str  # WM_CLASS
    left: int
    top: int
    width: int
    height: int
    pid: int  # in the sandbox; 0 if the window does not say


class Display:
    """A connection to the X server whose socket is `socket_path`."""

    def __init__(self, socket_path: Path, frame_buffer: Path) -> None:
        """Connect; raise BackendError if the server does not accept."""
        self._display = _guarded(_connect, socket_path)
        self._root = self._display.screen().root
        self._open(frame_buffer)
        _guarded(self._prepare)

    def _prepare(self) -> None:
        from Xlib.ext import damage

        self._display.damage_query_version()
        self._damage = self._root.damage_create(damage.DamageReportNonEmpty)
        self._damaged = self._display.extension_event.DamageNotify
        low = self._display.display.info.min_keycode
        count = self._display.display.info.max_keycode - low + 1
        rows = self._display.get_keyboard_mapping(low, count)
        self._keys: dict[int, tuple[int, bool]] = {}  # keysym: keycode and whether Shift is held
        for place in (1, 0):
            for offset, row in enumerate(rows):
                if len(row) > place and row[place]:
                    self._keys[row[place]] = (low + offset, bool(place))
        self._spare = [low + offset for offset, row in enumerate(rows) if not any(row)]
        self._lent: dict[int, int] = {}  # keysym: spare keycode, oldest first
        self._held: list[int] = []

    # Output ------------------------------------------------------------------------------------------------

    def screenshot(self) -> NDArray[np.uint8]:
        """Return the screen, (height, width, 3).

        It is read, not mapped: access to a map whose file has been cut off would kill this process.
        """
        pixels = np.empty((self.height, self._line // 4, 4), np.uint8)  # blue first
        if os.preadv(self._frame.fileno(), [pixels.data], self._start) != pixels.nbytes:
            raise BackendError("the desktop's frame buffer has been cut off")
        return np.ascontiguousarray(pixels[:, : self.width, 2::-1])

    def _open(self, frame_buffer: Path) -> None:
        """Open the server's frame buffer and read the size of the screen from its header."""
        try:
            self._frame = open(frame_buffer, "rb", buffering=0)  # noqa: SIM115  # stays open
            header = struct.unpack(f">{XWD_WORDS}I", self._frame.read(4 * XWD_WORDS))
        except (OSError, struct.error) as error:
            raise BackendError(f"the desktop's frame buffer cannot be read: {error}") from error
        self.width, self.height, self._line = header[4], header[5], header[12]
        self._start = header[0] + 12 * header[19]  # a colour takes 12 bytes

    def changed(self) -> bool:
        """Return True if anything was drawn since the last call."""
        return _guarded(self._changed)

    def _changed(self) -> bool:
        changed = False
        while self._display.pending_events():
            changed |= self._display.next_event().type == self._damaged
        if changed:
            self._display.damage_subtract(self._damage)
            self._display.sync()
        return changed

    def wait_for_change(self, seconds: float) -> None:
        """Sleep until the server sends something, at most so many seconds."""
        select.select([self._display], [], [], seconds)

    def windows(self) -> list[AppWindow]:
        """Return the open windows, the lowest first."""

        def read() -> list[AppWindow]:
            stack = self._property(self._root, "_NET_CLIENT_LIST_STACKING")
            windows = (self._window(int(number)) for number in (() if stack is None else stack))
            return [window for window in windows if window is not None]

        return _guarded(read)

    def focused(self) -> AppWindow | None:
        """Return the window with the keyboard's focus."""

        def read() -> AppWindow | None:
            value = self._property(self._root, "_NET_ACTIVE_WINDOW")
            return self._window(int(value[0])) if value is not None and len(value) and value[0] else None

        return _guarded(read)

    def _window(self, number: int) -> AppWindow | None:
        from Xlib import error

        window = self._display.create_resource_object("window", number)
        with contextlib.suppress(error.BadWindow, error.BadDrawable, error.BadMatch):
            geometry = window.get_geometry()
            place = window.translate_coords(self._root, 0, 0)
            title = self._property(window, "_NET_WM_NAME")
            pid = self._property(window, "_NET_WM_PID")
            program = window.get_wm_class() or ("",)
            return AppWindow(
                title.decode("utf-8", "replace") if isinstance(title, bytes) else "",
                program[-1],
                -place.x,
                -place.y,
                geometry.width,
                geometry.height,
                int(pid[0]) if pid is not None and len(pid) else 0,
            )
        return None

    def _property(self, window: Any, name: str) -> Any:
        from Xlib import X

        answer = window.get_full_property(self._display.get_atom(name), X.AnyPropertyType)
        return None if answer is None else answer.value

    def activate(self, title: str) -> bool:
        """Raise and focus the top window whose title contains `title`; return False if there is none."""

        def run() -> bool:
            from Xlib import X
            from Xlib.protocol import event

            stack = self._property(self._root, "_NET_CLIENT_LIST_STACKING")
            for number in reversed([int(each) for each in (() if stack is None else stack)]):
                window = self._window(number)
                if window is not None and title in window.title:
                    target = self._display.create_resource_object("window", number)
                    kind = self._display.get_atom("_NET_ACTIVE_WINDOW")
                    message = event.ClientMessage(window=target, client_type=kind, data=(32, [2, 0, 0, 0, 0]))
                    self._root.send_event(message, event_mask=X.SubstructureRedirectMask | X.SubstructureNotifyMask)
                    self._display.sync()
                    return True
            return False

        return _guarded(run)

    # Input -------------------------------------------------------------------------------------------------

    def pointer(self) -> tuple[int, int]:
        """Return the pointer's place, in pixels."""

        def read() -> tuple[int, int]:
            answer = self._root.query_pointer()
            return answer.root_x, answer.root_y

        return _guarded(read)

    def move(self, x: int, y: int) -> None:
        """Move the pointer."""
        from Xlib import X

        self._fake(X.MotionNotify, 0, x, y)

    def button(self, number: int, *, down: bool) -> None:
        """Press or release a button of the mouse."""
        from Xlib import X

        self._fake(X.ButtonPress if down else X.ButtonRelease, number)

    def key(self, symbol: int, *, down: bool) -> None:
        """Press or release a key, with Shift where its symbol needs it."""
        code, shifted = self._key(symbol)
        if shifted and down and not any(map(is_modifier, self._held)):
            self._tap(symbol)
            return
        self._fake_key(code, down=down)
        if down:
            self._held.append(symbol)
        elif symbol in self._held:
            self._held.remove(symbol)

    def release_all(self) -> None:
        """Release the keys and buttons that are still held."""
        for symbol in tuple(reversed(self._held)):
            self.key(symbol, down=False)
        for number in BUTTONS.values():
            self.button(number, down=False)
        self.sync()

    def unlock_capitals(self) -> None:
        """Switch Caps Lock and Num Lock off."""

        def run() -> None:
            from Xlib import XK

            for bit, symbol in ((1, XK.XK_Caps_Lock), (2, XK.XK_Num_Lock)):
                if self._display.get_keyboard_control().led_mask & bit:
                    self._tap(symbol)
                    self._display.sync()

        _guarded(run)

    def type(self, text: str, rest: Callable[[], object]) -> None:
        """Type a text; call `rest` after the keyboard map changed, so that applications learn of it."""
        for run in self._runs(text):
            missing = [symbol for symbol in dict.fromkeys(map(character_keysym, run)) if symbol not in self._keys]
            if missing:
                self._lend(missing)
                rest()
            for character in run:
                self._tap(character_keysym(character))
            self.sync()
            if missing:
                rest()

    def can_type(self, text: str) -> bool:
        """Return True if every character has a key or can be lent one."""
        return all(character_keysym(character) for character in text)

    def sync(self) -> None:
        """Wait until the server has handled all input."""
        _guarded(self._display.sync)

    def close(self) -> None:
        """Close the connection."""
        self._frame.close()
        with contextlib.suppress(BackendError):
            _guarded(self._display.close)

    def _runs(self, text: str) -> Iterator[str]:
        """Yield pieces of the text whose characters fit on the spare keys at once."""
        start, extra = 0, set[str]()
        for place, character in enumerate(text):
            if character_keysym(character) not in self._keys:
                if character not in extra and len(extra) == len(self._spare):
                    yield text[start:place]
                    start, extra = place, set()
                extra.add(character)
        yield text[start:]

    def _lend(self, symbols: Iterable[int]) -> None:
        """Put symbols on spare keys, in place of those lent before."""
        for symbol in self._lent:
            del self._keys[symbol]
        self._lent = dict(zip(symbols, self._spare, strict=False))
        for symbol, code in self._lent.items():
            self._display.change_keyboard_mapping(code, [(symbol, symbol)])
            self._keys[symbol] = (code, False)
        self.sync()

    def _key(self, symbol: int) -> tuple[int, bool]:
        if symbol not in self._keys:
            self._lend([symbol])
        return self._keys[symbol]

    def _tap(self, symbol: int) -> None:
        from Xlib import XK

        code, shifted = self._key(symbol)
        shift = self._keys[XK.XK_Shift_L][0]
        if shifted:
            self._fake_key(shift, down=True)
        self._fake_key(code, down=True)
        self._fake_key(code, down=False)
        if shifted:
            self._fake_key(shift, down=False)

    def _fake_key(self, code: int, *, down: bool) -> None:
        from Xlib import X

        self._fake(X.KeyPress if down else X.KeyRelease, code)

    def _fake(self, kind: int, detail: int, x: int = 0, y: int = 0) -> None:
        from Xlib.ext import xtest

        _guarded(xtest.fake_input, self._display, kind, detail, x=x, y=y)


def _connect(path: Path) -> Any:
    """Return python-xlib's display over a socket at any path; the library itself looks in /tmp/.X11-unix only."""
    from Xlib import display
    from Xlib.support import connect

    connection = socket.socket(socket.AF_UNIX)
    connection.connect(str(path))
    with _CONNECTING, mock.patch.object(connect, "get_socket", return_value=connection):
        return display.Display(":0")


def _guarded(work: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
    """Call a function of python-xlib; turn a broken connection into BackendError."""
    from Xlib import error

    try:
        return work(*arguments, **named)
    except (OSError, error.ConnectionClosedError, error.DisplayError) as failure:
        raise BackendError(f"the desktop's display has ended: {str(failure)[:200]}") from failure


def wait_until(ready: Callable[[], bool], seconds: float, what: str) -> None:
    """Return when `ready()` is true; raise BackendError after so many seconds."""
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise BackendError(f"{what} was not ready within {seconds:g} s")
        time.sleep(POLL)
