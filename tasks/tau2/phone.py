"""The user's phone in the telecom domain: its state and network, and what tasks do to it and assert of it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from typing import Any

from lmgym.backends.user.tools import ToolError
from lmgym.tasks.tau2.toolkit import Data, Toolkit, with_defaults

APN: Data = {
    "apn_name": "internet",
    "reset_at_reboot": False,
    "mms_apn": "mms",
    "mmsc_url": "http://mms.carrier.com/mms/wapenc",
    "mms_proxy": None,
    "mms_port": None,
}
PERMISSIONS = ("sms", "storage", "phone", "network")
DEVICE: Data = {
    "sim_card_status": "active",
    "sim_card_missing": False,
    "airplane_mode": False,
    "network_signal_strength": "good",
    "network_technology_connected": "5G",
    "network_connection_status": "connected",
    "battery_level": 80,
    "data_enabled": True,
    "roaming_enabled": False,
    "network_mode_preference": "4g_5g_preferred",
    "active_apn_settings": APN,
    "wifi_enabled": False,
    "wifi_connected": False,
    "wifi_ssid": None,
    "wifi_signal_strength": "none",
    "wifi_calling_enabled": False,
    "wifi_calling_mms_over_wifi": False,
    "data_saver_mode": False,
    "vpn_enabled_setting": False,
    "vpn_connected": False,
    "vpn_details": None,
    "app_statuses": {},
}
APPS: Mapping[str, tuple[str, ...]] = {"messaging": ("sms", "storage", "phone"), "browser": ("storage", "network")}
SURROUNDINGS: Data = {
    "name": None,
    "phone_number": None,
    "is_abroad": False,
    "roaming_allowed": False,
    "signal_strength": {"2G": "poor", "3G": "fair", "4G": "good", "5G": "excellent"},
    "mobile_data_usage_exceeded": False,
    "line_active": True,
    "payment_request": None,
}
VPN: Data = {"server_address": "192.168.1.1", "protocol": "OpenVPN", "server_performance": "excellent"}
MODES = ("4g_5g_preferred", "4g_only", "3g_only", "2g_only")
SPEEDS = {"2G": (0.1, 0.4), "3G": (1.0, 5.0), "4G": (10.0, 100.0), "5G": (50.0, 500.0), "none": (0.0, 0.0)}  # Mbps
SIGNALS = {"none": 0.0, "poor": 0.2, "fair": 0.5, "good": 0.8, "excellent": 1.0}  # factors of speed
GRADES = ((1, "Very Poor"), (5, "Poor"), (25, "Fair"), (100, "Good"))  # Mbps below which a speed has this name


def phone_data(content: Data) -> Data:
    """Return the user's database as loaded from its file, with all fields."""
    device = with_defaults(content.get("device", {}), DEVICE)
    if not device["app_statuses"]:
        device["app_statuses"] = {
            name: {"app_name": name, "permissions": {each: each in granted for each in PERMISSIONS}}
            for name, granted in APPS.items()
        }
    return {"device": device, "surroundings": with_defaults(content.get("surroundings", {}), SURROUNDINGS)}


class Phone(Toolkit):
    """A phone and what surrounds it."""

    FUNCTIONS = (
        *("set_user_info", "set_user_location", "simulate_network_search", "set_wifi_calling"),
        *("turn_airplane_mode_on", "turn_airplane_mode_off", "turn_data_on", "turn_data_off", "turn_roaming_on"),
        *("turn_roaming_off", "turn_data_saver_mode_on", "turn_data_saver_mode_off", "unseat_sim_card"),
        *("lock_sim_card", "break_apn_settings", "break_apn_mms_setting", "break_vpn", "remove_app_permission"),
        *("assert_airplane_mode_status", "assert_service_status", "assert_mobile_data_status"),
        *("assert_mobile_roaming_status", "assert_mobile_data_saver_mode_status", "assert_internet_speed"),
        *("assert_internet_not_excellent", "assert_can_send_mms", "assert_mobile_data_usage_exceeded"),
    )

    def __init__(self, data: Data) -> None:
        super().__init__(data)
        self.vpn = dict(VPN)  # what connecting connects to; breaking it breaks the next connection too

    @property
    def device(self) -> Data:
        """The phone."""
        device: Data = self.data["device"]
        return device

    @property
    def surroundings(self) -> Data:
        """The line, the place and the network around the phone."""
        surroundings: Data = self.data["surroundings"]
        return surroundings

    # State -----------------------------------------------------------------------------------------------------

    def sim_status(self) -> str:
        """Return the status of the SIM card."""
        return "missing" if self.device["sim_card_missing"] else str(self.device["sim_card_status"])

    def simulate_network_search(self) -> None:
        """Connect to the best network that settings, SIM, APN and line allow."""
        around = self.surroundings["signal_strength"]
        best = "5G" if around.get("5G", "none") != "none" else "4G"
        preferred = {"4g_5g_preferred": best, "3g_only": "3G", "2g_only": "2G"}
        technology = preferred.get(self.device["network_mode_preference"], "4G")
        if (
            self.sim_status() != "active"
            or self.device["airplane_mode"]
            or self.device["active_apn_settings"]["apn_name"] == "broken"
            or not self.surroundings["line_active"]
        ):
            self._connect("no_service", "none", "none")
        else:
            self._connect("connected", technology, around.get(technology, "none"))

    def mobile_data_works(self) -> bool:
        """Return True if mobile data can be used."""
        device, around = self.device, self.surroundings
        roams = device["roaming_enabled"] and around["roaming_allowed"]
        return bool(
            not device["airplane_mode"]
            and device["network_signal_strength"] != "none"
            and device["network_connection_status"] != "no_service"
            and (not around["is_abroad"] or roams)
            and device["data_enabled"]
            and not around["mobile_data_usage_exceeded"]
        )

    def speed(self) -> tuple[float | None, str]:
        """Return the speed in Mbps with its grade; None without a connection."""
        device = self.device
        if not self.mobile_data_works():
            return None, "No Connection"
        details = device["vpn_details"]
        slowed = device["vpn_connected"] and details and details["server_performance"] == "poor"
        factor = 0.1 if slowed else 1.0
        if device["data_saver_mode"]:
            factor *= 0.2
        low, high = SPEEDS.get(device["network_technology_connected"], (0.0, 0.0))
        mbps = round((low + high) / 2.0 * SIGNALS.get(device["network_signal_strength"], 0.0) * factor, 2)
        return mbps, next((name for limit, name in GRADES if mbps < limit), "Excellent")

    def mms_works(self) -> bool:
        """Return True if the messaging app can send pictures."""
        device = self.device
        app = device["app_statuses"].get("messaging")
        return bool(
            self.mobile_data_works()
            and device["network_technology_connected"] != "2G"
            and not (device["wifi_calling_enabled"] and device["wifi_calling_mms_over_wifi"])
            and device["active_apn_settings"]["mmsc_url"] is not None
            and app is not None
            and app["permissions"]["storage"]
            and app["permissions"]["sms"]
        )

    def switch(self, setting: str, on: bool, *, search: bool = True) -> None:
        """Set a switch of the phone; most make it search for a network."""
        self.device[setting] = on
        if search:
            self.simulate_network_search()

    def set_airplane_mode(self, on: bool) -> None:
        """Switch airplane mode, which cuts Wi-Fi and, when switched on, the VPN."""
        device = self.device
        device["airplane_mode"] = on
        if on or device["wifi_enabled"]:
            device |= {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}
        if on and device["vpn_connected"]:
            device |= {"vpn_connected": False, "vpn_details": None}
        self.simulate_network_search()

    def _connect(self, status: str, technology: str, signal: str) -> None:
        self.device.update(
            network_connection_status=status, network_technology_connected=technology, network_signal_strength=signal
        )

    # Functions of tasks ----------------------------------------------------------------------------------------

    def set_user_info(self, name: str, phone_number: str) -> None:
        """Say whose phone it is."""
        self.surroundings.update(name=name, phone_number=phone_number)

    def set_user_location(self, abroad: bool) -> None:
        """Say where the user is."""
        self.surroundings["is_abroad"] = abroad

    def turn_airplane_mode_on(self) -> str:
        """Switch airplane mode on, as two toggles do where it is on."""
        self.set_airplane_mode(True)
        return "Airplane Mode is now ON."

    def turn_airplane_mode_off(self) -> str:
        """Switch airplane mode off."""
        self.set_airplane_mode(False)
        return "Airplane Mode is now OFF."

    def _turned(self, setting: str, on: bool, words: str, *, search: bool = True) -> str:
        self.switch(setting, on, search=search)
        return words

    turn_data_on = partialmethod(_turned, "data_enabled", True, "Data connection restored.", search=False)
    turn_data_off = partialmethod(_turned, "data_enabled", False, "Data connection broken.")
    turn_roaming_on = partialmethod(_turned, "roaming_enabled", True, "Data Roaming is now ON.")
    turn_roaming_off = partialmethod(_turned, "roaming_enabled", False, "Data Roaming is now OFF.")
    turn_data_saver_mode_on = partialmethod(
        _turned, "data_saver_mode", True, "Data Saver Mode is now ON.", search=False
    )
    turn_data_saver_mode_off = partialmethod(
        _turned, "data_saver_mode", False, "Data Saver Mode is now OFF.", search=False
    )
    unseat_sim_card = partialmethod(_turned, "sim_card_missing", True, "SIM card un-seated successfully.")

    def lock_sim_card(self, mode: str) -> str:
        """Lock the SIM card by "pin" or "puk"."""
        if mode in ("pin", "puk"):
            self.device["sim_card_status"] = f"locked_{mode}"
        self.simulate_network_search()
        return f"SIM card locked successfully in {mode} mode."

    def break_apn_settings(self) -> str:
        """Break the access point, and with it the connection."""
        self.device["active_apn_settings"]["apn_name"] = "broken"
        self.simulate_network_search()
        return "APN settings broken. Please call reset_apn_settings() to fix."

    def break_apn_mms_setting(self) -> str:
        """Remove the address that picture messages need."""
        self.device["active_apn_settings"]["mmsc_url"] = None
        return "APN MMS setting broken. Please call reset_apn_settings() to fix."

    def break_vpn(self) -> str:
        """Connect to a slow VPN."""
        if not self.device["vpn_connected"]:
            self.device.update(vpn_connected=True, vpn_details=self.vpn)
        self.device["vpn_details"]["server_performance"] = "poor"
        return "VPN connection broken."

    def set_wifi_calling(self, enabled: bool, mms_over_wifi: bool | None = None) -> str:
        """Set Wi-Fi calling."""
        self.device["wifi_calling_enabled"] = enabled
        text = f"Wi-Fi Calling is now {'ON' if enabled else 'OFF'}."
        if mms_over_wifi is not None:
            self.device["wifi_calling_mms_over_wifi"] = mms_over_wifi
            text += f"\nMMS over Wi-Fi is now {'ON' if mms_over_wifi else 'OFF'}."
        return text

    def remove_app_permission(self, app_name: str, permission: str) -> tuple[bool, str]:
        """Take a permission from an app."""
        app, permission = self.device["app_statuses"].get(app_name), permission.lower()
        if app is None:
            return False, f"App '{app_name}' not found. Cannot remove permission."
        if permission not in app["permissions"]:
            return False, f"Permission '{permission}' not tracked for app '{app_name}'."
        app["permissions"][permission] = False
        return True, f"Permission '{permission}' removed from app '{app_name}'."

    def _is_set(self, setting: str, expected_status: bool) -> bool:
        return bool(self.device[setting] == expected_status)

    assert_airplane_mode_status = partialmethod(_is_set, "airplane_mode")
    assert_mobile_roaming_status = partialmethod(_is_set, "roaming_enabled")
    assert_mobile_data_saver_mode_status = partialmethod(_is_set, "data_saver_mode")

    def assert_service_status(self, expected_status: str) -> bool:
        """Return True if the network connection is as expected."""
        if expected_status not in ("connected", "searching", "no_service", "emergency_only"):
            raise ToolError(f"{expected_status!r} is not a valid NetworkStatus")
        return bool(self.device["network_connection_status"] == expected_status)

    def assert_mobile_data_status(self, expected_status: bool) -> bool:
        """Return True if mobile data works, or not, as expected."""
        return self.mobile_data_works() == expected_status

    def assert_internet_speed(self, expected_speed: float, expected_desc: str | None = None) -> bool:
        """Return True if the speed is at least `expected_speed` Mbps, with this grade if one is given."""
        mbps, grade = self.speed()
        fast = (mbps or 0.0) >= expected_speed
        return fast and (expected_desc is None or grade.lower() == expected_desc.lower())

    def assert_internet_not_excellent(self) -> bool:
        """Return True if the speed is not excellent."""
        return self.speed()[1] != "Excellent"

    def assert_can_send_mms(self, expected_status: bool) -> bool:
        """Return True if picture messages work, or not, as expected."""
        return self.mms_works() == expected_status

    def assert_mobile_data_usage_exceeded(self, expected_status: bool) -> bool:
        """Return True if the data limit is exceeded, or not, as expected."""
        exceeded: Any = self.surroundings["mobile_data_usage_exceeded"]
        return bool(exceeded == expected_status)
