"""The home folder that a desktop starts with: settings that keep the screen at rest, and a LibreOffice profile.

The profile is made once per machine by LibreOffice itself and kept in the user's cache.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from lmgym.backends.desktop.folders import REQUESTS, empty
from lmgym.backends.desktop.shell import RUNTIME
from lmgym.cache import cache_folders
from lmgym.errors import BackendError

VERSION = 4  # of the template: raise it when a file below changes
PROFILE = ".config/libreoffice/4/user/registrymodifications.xcu"

GTK = """[Settings]
gtk-cursor-blink=0
gtk-enable-animations=0
gtk-theme-name=Adwaita
gtk-icon-theme-name=Adwaita
gtk-font-name=DejaVu Sans 10
gtk-recent-files-enabled=0
"""
KEYFILE = """[org/gnome/desktop/interface]
cursor-blink=false
enable-animations=false
toolkit-accessibility=true

[org/xfce/mousepad/preferences/file]
session-restore='never'

[org/xfce/mousepad/preferences/window]
remember-state=false

[org/xfce/mousepad/state/window]
width=uint32 820
height=uint32 560

[org/gnome/evince/default]
show-sidebar=false
window-ratio=(1.0, 1.0)
"""
TERMINAL = """[general]
fontname=Monospace 10
scrollback=2000
cursorblinks=false
hidemenubar=true
"""
XFCONF = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="thunar" version="1.0">
  <property name="last-view" type="string" value="ThunarDetailsView"/>
  <property name="last-show-hidden" type="bool" value="false"/>
  <property name="misc-thumbnail-mode" type="string" value="THUNAR_THUMBNAIL_MODE_NEVER"/>
  <property name="misc-single-click" type="bool" value="false"/>
  <property name="last-window-maximized" type="bool" value="false"/>
</channel>
"""
VIEWER = """<?xml version="1.0" encoding="UTF-8"?>
<channel name="ristretto" version="1.0">
  <property name="errors" type="empty">
    <property name="missing-thumbnailer" type="bool" value="false"/>
  </property>
  <property name="window" type="empty">
    <property name="thumbnails" type="empty">
      <property name="show" type="bool" value="false"/>
    </property>
  </property>
</channel>
"""
SHELL = "PS1='$ '\nHISTFILE=\n"

# No key or menu of the window manager ends the session; C-A-BackSpace does nothing on Xvfb.
_PRESS = ("Focus", "Raise")
_BINDINGS: dict[str, list[tuple[str, str, tuple[str, ...]]]] = {  # context: (button, event, actions)
    "Frame": [("A-Left", "Press", _PRESS), ("A-Left", "Drag", ("Move",))],
    "Titlebar": [
        ("Left", "Press", _PRESS),
        ("Left", "Drag", ("Move",)),
        ("Left", "DoubleClick", ("ToggleMaximize",)),
    ],
    "Client": [("Left", "Press", _PRESS), ("Middle", "Press", _PRESS), ("Right", "Press", _PRESS)],
    "Iconify": [("Left", "Press", _PRESS), ("Left", "Click", ("Iconify",))],
    "Maximize": [("Left", "Press", _PRESS), ("Left", "Click", ("ToggleMaximize",))],
    "Close": [("Left", "Press", _PRESS), ("Left", "Click", ("Close",))],
    "Bottom Left Right Top TLCorner TRCorner BRCorner BLCorner": [
        ("Left", "Press", _PRESS),
        ("Left", "Drag", ("Resize",)),
    ],
}
_KEYS = {"A-F4": "Close", "A-Tab": "NextWindow", "A-S-Tab": "PreviousWindow", "W-d": "ToggleShowDesktop"}
APPLICATIONS = {  # label of the root menu: command
    "Browser": "chromium",
    "Writer": "soffice --writer",
    "Calc": "soffice --calc",
    "Impress": "soffice --impress",
    "Text editor": "mousepad",
    "Files": "thunar",
    "Terminal": "lxterminal",
    "Images": "ristretto",
    "PDF reader": "evince",
}
SERVICES = ("ca.desrt.dconf", "org.a11y.Bus", "org.gnome.evince.Daemon", "org.xfce.Xfconf")
# Starts these services only: any other would run beside the servers, as would those that a home folder describes
SESSION_BUS = f"""<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <keep_umask/>
  <listen>unix:path={RUNTIME}/bus</listen>
  <auth>EXTERNAL</auth>
  <servicedir>{RUNTIME}/services</servicedir>
  <policy context="default">
    <allow send_destination="*" eavesdrop="true"/>
    <allow eavesdrop="true"/>
    <allow own="*"/>
  </policy>
</busconfig>
"""
_OFFICE = {  # (path, property): value of LibreOffice's registry
    ("/org.openoffice.Office.Common/Misc", "ShowTipOfTheDay"): "false",
    ("/org.openoffice.Office.Common/Misc", "FirstRun"): "false",
    ("/org.openoffice.Office.Common/Misc", "CollectUsageInformation"): "false",
    ("/org.openoffice.Office.Common/Save/Document", "WarnAlienFormat"): "false",
    ("/org.openoffice.Office.Common/Accessibility", "AutoDetectSystemHC"): "false",
    ("/org.openoffice.Office.Recovery/AutoSave", "Enabled"): "false",
    ("/org.openoffice.Office.Recovery/RecoveryInfo", "Enabled"): "false",
    ("/org.openoffice.Office.Recovery/RecoveryInfo", "SessionData"): "false",
    ("/org.openoffice.Office.Impress/Misc/Start", "AutoPilot"): "false",
    ("/org.openoffice.Office.Impress/Misc", "Start/EnableSdremote"): "false",
}


def write_settings(home: Path) -> None:
    """Write the settings of all applications but LibreOffice's own into a new home folder."""
    for name, content in {
        ".config/gtk-3.0/settings.ini": GTK,
        ".config/glib-2.0/settings/keyfile": KEYFILE,
        ".config/lxterminal/lxterminal.conf": TERMINAL,
        ".config/xfce4/xfconf/xfce-perchannel-xml/thunar.xml": XFCONF,
        ".config/xfce4/xfconf/xfce-perchannel-xml/ristretto.xml": VIEWER,
        ".config/user-dirs.dirs": 'XDG_DOCUMENTS_DIR="$HOME/Documents"\nXDG_DOWNLOAD_DIR="$HOME/Downloads"\n',
        ".bashrc": SHELL,
        PROFILE: office_settings(),
    }.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    for folder in ("Documents", "Downloads"):
        (home / folder).mkdir()


def write_server_settings(folder: Path) -> None:
    """Write the settings of the window manager and the session bus, where applications cannot change them."""
    (folder / "openbox").mkdir()
    (folder / "openbox" / "rc.xml").write_text(window_manager_settings(), encoding="utf-8")
    (folder / "openbox" / "menu.xml").write_text(menu_of_applications(), encoding="utf-8")
    (folder / "services").mkdir()
    for name in SERVICES:
        (folder / "services" / f"{name}.service").symlink_to(f"/usr/share/dbus-1/services/{name}.service")
    (folder / "session.conf").write_text(SESSION_BUS, encoding="utf-8")


def window_manager_settings() -> str:
    """Return openbox's rc.xml."""
    keys = "".join(f'<keybind key="{key}"><action name="{action}"/></keybind>' for key, action in _KEYS.items())
    contexts = "".join(
        f'<context name="{context}">'
        + "".join(
            f'<mousebind button="{button}" action="{event}">'
            + "".join(f'<action name="{action}"/>' for action in actions)
            + "</mousebind>"
            for button, event, actions in bindings
        )
        + "</context>"
        for context, bindings in _BINDINGS.items()
    )
    root = (
        '<context name="Root"><mousebind button="Right" action="Press"><action name="ShowMenu"><menu>root-menu</menu>'
    )
    root += "</action></mousebind></context>"
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<openbox_config xmlns="http://openbox.org/3.4/rc">'
        "<focus><focusNew>yes</focusNew><focusLast>yes</focusLast></focus>"
        "<placement><policy>Smart</policy><center>yes</center></placement>"
        "<theme><name>Clearlooks</name><titleLayout>LIMC</titleLayout><animateIconify>no</animateIconify></theme>"
        "<desktops><number>1</number><popupTime>0</popupTime></desktops>"
        f"<keyboard>{keys}</keyboard><mouse><dragThreshold>4</dragThreshold><doubleClickTime>400</doubleClickTime>"
        f"{contexts}{root}</mouse></openbox_config>\n"
    )


def menu_of_applications() -> str:
    """Return openbox's menu.xml: a right click on the empty desktop starts applications, in their own sandbox."""
    items = "".join(
        f'<item label="{label}"><action name="Execute">'
        f'<command>sh -c "echo {command} >{RUNTIME}/{REQUESTS}"</command></action></item>'
        for label, command in APPLICATIONS.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<openbox_menu xmlns="http://openbox.org/3.4/menu">'
        f'<menu id="root-menu" label="Applications">{items}</menu></openbox_menu>\n'
    )


def office_settings() -> str:
    """Return the part of LibreOffice's registry in which the template differs from the default."""
    items = "".join(
        f'<item oor:path="{path}"><prop oor:name="{name}" oor:op="fuse"><value>{value}</value></prop></item>\n'
        for (path, name), value in _OFFICE.items()
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry" '
        'xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">\n'
        f"{items}</oor:items>\n"
    )


@cache
def template_folder() -> Path:
    """Return the folder of this machine's template; it may not exist yet."""
    office = Path("/usr/lib/libreoffice/program/versionrc")
    stamp = int(office.stat().st_mtime) if office.exists() else 0
    return cache_folders("desktop")[-1] / f"home-{VERSION}-{stamp}"


def store_template(home: Path) -> None:
    """Keep a home folder that applications have completed as this machine's template."""
    target = template_folder()
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent))
    shutil.copytree(home, temporary / "home", symlinks=True)
    for leftover in (".cache", ".config/pulse", ".local"):
        shutil.rmtree(temporary / "home" / leftover, ignore_errors=True)
    try:
        os.rename(temporary / "home", target)
    except OSError:
        assert target.exists()  # another process was faster
    shutil.rmtree(temporary, ignore_errors=True)


def fill_home(home: Path) -> None:
    """Make `home` equal to the template; raise BackendError if what it holds cannot be removed."""
    try:
        empty(home)
    except OSError as error:
        raise BackendError(f"the home folder of the last episode cannot be emptied: {error}") from error
    shutil.copytree(template_folder(), home, symlinks=True, dirs_exist_ok=True)
