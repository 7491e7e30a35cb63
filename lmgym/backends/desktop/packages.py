"""Programs and Python packages that a desktop needs."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from lmgym.backends.desktop import clock
from lmgym.errors import MissingExtra

ATSPI = Path("/usr/libexec/at-spi-bus-launcher")
PROGRAMS = {  # Debian package: its program
    "bubblewrap": "bwrap",
    "xvfb": "Xvfb",
    "openbox": "openbox",
    "dbus": "dbus-daemon",
    "at-spi2-core": str(ATSPI),
    "libfaketime": clock.LIBRARY,
    "libreoffice-writer": "lowriter",
    "libreoffice-calc": "localc",
    "libreoffice-impress": "loimpress",
    "libreoffice-gtk3": "/usr/lib/libreoffice/program/libvclplug_gtk3lo.so",
    "mousepad": "mousepad",
    "thunar": "thunar",
    "lxterminal": "lxterminal",
    "ristretto": "ristretto",
    "evince": "evince",
}
MODULES = ("Xlib", "jeepney", "PIL")


def check_installed() -> None:
    """Raise MissingExtra with the Debian packages and the extra that are missing."""
    missing = [package for package, program in PROGRAMS.items() if shutil.which(program, os.F_OK) is None]
    if missing:
        raise MissingExtra(f"desktop tasks need Debian packages: apt-get install {' '.join(missing)}")
    if any(find_spec(module) is None for module in MODULES):
        raise MissingExtra("desktop tasks need: pip install 'lmgym[gui]'")
