"""The thirty tools with which the user of the telecom domain looks at and changes the phone."""

from __future__ import annotations

from typing import Annotated

from lmgym.backends.user.tools import ToolError, tool
from lmgym.tasks.tau2.phone import APN, MODES, Phone
from lmgym.tasks.tau2.toolkit import with_defaults

AppName = Annotated[str, "such as 'messaging'"]
BARS = {
    **{"none": "📵 No Signal", "poor": "📶¹ Poor", "fair": "📶² Fair", "good": "📶³ Good"},
    "excellent": "📶⁴ Excellent",
}
ADVICE = {
    "Very Poor": "Connection is very slow. Basic web browsing might be difficult.",
    "Poor": "Connection is slow. Web browsing may be sluggish, streaming difficult.",
    "Fair": "Connection is okay for web browsing and some standard definition streaming.",
    "Good": "Connection is good for most activities, including HD streaming.",
    "Excellent": "Connection is very fast.",
}
SIM = {
    "active": "Your SIM card is active and working.",
    "missing": "No SIM card detected in the phone.",
    "locked_pin": "The SIM card is locked with a PIN code.",
    "locked_puk": "The SIM card is locked with a PUK code.",
}


class PhoneTools(Phone):
    """The phone with its user's tools; results are the words of tau2-bench, which its guidelines and records use."""

    # Looking ---------------------------------------------------------------------------------------------------

    @tool
    def check_status_bar(self) -> str:
        """Return what the status bar shows."""
        return f"Status Bar: {self._bar()}"

    @tool
    def check_network_status(self) -> str:
        """Return the state of airplane mode, SIM, cellular connection, data, roaming and Wi-Fi."""
        device = self.device
        lines = [
            f"Airplane Mode: {_on(device['airplane_mode'])}",
            f"SIM Card Status: {self.sim_status()}",
            f"Cellular Connection: {device['network_connection_status']}",
            f"Cellular Signal: {device['network_signal_strength']}",
            f"Cellular Network Type: {device['network_technology_connected']}",
            f"Mobile Data Enabled: {_yes(device['data_enabled'])}",
            f"Data Roaming Enabled: {_yes(device['roaming_enabled'])}",
            f"Wi-Fi Radio: {_on(device['wifi_enabled'])}",
            f"Wi-Fi Connected: {_yes(device['wifi_connected'])}",
        ]
        if device["wifi_connected"]:
            lines.append(f"Connected Wi-Fi Network: {device['wifi_ssid']}")
        return "\n".join(lines)

    @tool
    def check_network_mode_preference(self) -> str:
        """Return the preferred network mode."""
        return f"Network Mode Preference: {self.device['network_mode_preference']}"

    @tool
    def run_speed_test(self) -> str:
        """Measure the speed of mobile data."""
        mbps, grade = self.speed()
        if mbps is None:
            return f"Speed test failed: {grade}."
        return f"Speed Test Result: {mbps:.2f} Mbps ({grade}). {ADVICE[grade]}"

    @tool
    def check_sim_status(self) -> str:
        """Return the state of the SIM card."""
        return SIM.get(self.sim_status(), f"Unknown SIM status: {self.sim_status()}")

    @tool
    def check_data_restriction_status(self) -> str:
        """Return the state of data saver."""
        on = self.device["data_saver_mode"]
        return "Data Saver mode is ON (limits data usage)." if on else "Data Saver mode is OFF."

    @tool
    def check_apn_settings(self) -> str:
        """Return the access point settings."""
        settings = self.device["active_apn_settings"]
        return (
            f"Current APN Name: {settings['apn_name']}\n"
            f"MMSC URL (for picture messages): {settings['mmsc_url'] or 'Not Set'}\n"
            "(These are technical settings, usually best left unchanged.)"
        )

    @tool
    def check_wifi_status(self) -> str:
        """Return the state of Wi-Fi."""
        device = self.device
        if not device["wifi_enabled"]:
            return "Wi-Fi is turned OFF."
        if not device["wifi_connected"]:
            return "Wi-Fi is ON but not connected to any network."
        return (
            f"Wi-Fi is ON and connected to '{device['wifi_ssid']}'. Signal strength: {device['wifi_signal_strength']}."
        )

    @tool
    def check_wifi_calling_status(self) -> str:
        """Return the state of Wi-Fi calling."""
        return f"Wi-Fi Calling is currently turned {_on(self.device['wifi_calling_enabled'])}."

    @tool
    def check_vpn_status(self) -> str:
        """Return the state of the VPN."""
        device = self.device
        if device["vpn_connected"]:
            details = device["vpn_details"]
            return (
                f"VPN is ON and connected. Details: {details}"
                if details
                else "VPN is ON and connected (no specific details available)."
            )
        if device["vpn_enabled_setting"]:
            return "VPN is turned ON in settings, but currently not connected."
        return "VPN is turned OFF."

    @tool
    def check_installed_apps(self) -> str:
        """Return the names of the installed apps."""
        return f"The following apps are installed on the phone: {', '.join(self.device['app_statuses'])}"

    @tool
    def check_app_status(self, app_name: AppName) -> str:
        """Return the state of an app."""
        granted = self._granted(app_name)
        if granted is None:
            return f"App '{app_name}' not found on this phone."
        if not granted:
            return f"Status for App: {app_name}\n - Permissions: None granted."
        return "\n".join(
            [f"Status for App: {app_name}", " - Permissions Granted:", *(f"   - {each}" for each in granted)]
        )

    @tool
    def check_app_permissions(self, app_name: AppName) -> str:
        """Return the permissions of an app."""
        granted = self._granted(app_name)
        if granted is None:
            return f"App '{app_name}' not found on this phone."
        if not granted:
            return f"App '{app_name}' currently has no permissions granted."
        return f"App '{app_name}' has permission for: {', '.join(granted)}."

    @tool
    def can_send_mms(self) -> str:
        """Find out whether the messaging app can send pictures."""
        return f"Your messaging app {'can' if self.mms_works() else 'cannot'} send MMS messages."

    @tool
    def check_payment_request(self) -> str:
        """Return the payment request, if there is one."""
        request = self.surroundings["payment_request"]
        if request is None:
            return "No payment request has been made."
        return f"You have a payment request for bill {request['bill_id']} of {request['amount_due']} USD."

    # Changing --------------------------------------------------------------------------------------------------

    @tool
    def set_network_mode_preference(self, mode: Annotated[str, f"one of {', '.join(MODES)}"]) -> str:
        """Set the preferred network mode."""
        if mode not in MODES:
            return self._done(
                f"Failed to set network mode: '{mode}' is not a valid option. Please use one of: {', '.join(MODES)}"
            )
        self.device["network_mode_preference"] = mode
        self.simulate_network_search()
        return self._done(f"Preferred Network Mode set to: {mode}")

    @tool
    def toggle_airplane_mode(self) -> str:
        """Switch airplane mode."""
        self.set_airplane_mode(not self.device["airplane_mode"])
        return self._done(f"Airplane Mode is now {_on(self.device['airplane_mode'])}.")

    @tool
    def reseat_sim_card(self) -> str:
        """Take the SIM card out and put it back."""
        self.switch("sim_card_missing", False)
        return self._done("SIM card re-seated successfully.")

    @tool
    def toggle_data(self) -> str:
        """Switch mobile data."""
        return self._toggle("data_enabled", "Mobile Data")

    @tool
    def toggle_roaming(self) -> str:
        """Switch data roaming."""
        return self._toggle("roaming_enabled", "Data Roaming")

    @tool
    def toggle_data_saver_mode(self) -> str:
        """Switch data saver."""
        return self._toggle("data_saver_mode", "Data Saver Mode", search=False)

    @tool
    def set_apn_settings(self, apn_settings: Annotated[dict[str, object], "new access point settings by name"]) -> str:
        """Set the access point."""
        if extra := [name for name in apn_settings if name not in APN]:
            raise ToolError(f"unknown APN setting {extra[0][:80]!r}; the settings are {', '.join(APN)}")
        settings = with_defaults(apn_settings, APN)
        if settings["apn_name"] not in ("internet", "broken"):
            raise ToolError(f"unknown APN name {str(settings['apn_name'])[:80]!r}; choose internet or broken")
        self.device["active_apn_settings"] = settings
        self.simulate_network_search()
        return self._done(f"APN settings set to: {settings['apn_name']}")

    @tool
    def reset_apn_settings(self) -> str:
        """Reset the access point at the next reboot."""
        self.device["active_apn_settings"]["reset_at_reboot"] = True
        self.simulate_network_search()
        return self._done("APN settings will reset at reboot.")

    @tool
    def toggle_wifi(self) -> str:
        """Switch Wi-Fi."""
        device = self.device
        if device["airplane_mode"]:
            return self._done("Cannot change Wi-Fi settings while Airplane Mode is ON.")
        device["wifi_enabled"] = not device["wifi_enabled"]
        if not device["wifi_enabled"]:
            device |= {"wifi_connected": False, "wifi_ssid": None, "wifi_signal_strength": "none"}
        return self._done(f"Wi-Fi is now {_on(device['wifi_enabled'])}.")

    @tool
    def toggle_wifi_calling(self) -> str:
        """Switch Wi-Fi calling."""
        return self._toggle("wifi_calling_enabled", "Wi-Fi Calling", search=False)

    @tool
    def connect_vpn(self) -> str:
        """Connect the VPN."""
        if self.device["vpn_connected"]:
            return "VPN already connected."
        self.device.update(vpn_connected=True, vpn_details=self.vpn)
        return self._done("VPN connected successfully.")

    @tool
    def disconnect_vpn(self) -> str:
        """Disconnect the VPN."""
        if not self.device["vpn_connected"]:
            return self._done("No active VPN connection to disconnect.")
        self.device.update(vpn_connected=False, vpn_details=None)
        return self._done("VPN disconnected successfully.")

    @tool
    def grant_app_permission(self, app_name: AppName, permission: Annotated[str, "such as 'storage'"]) -> str:
        """Give a permission to an app."""
        app, permission = self.device["app_statuses"].get(app_name), permission.lower()
        if app is None:
            return self._done(f"Error. App '{app_name}' not found. Cannot grant permission.")
        if permission not in app["permissions"]:
            return self._done(
                f"Error. Permission '{permission}' not tracked for app '{app_name}', "
                f"available permissions: {list(app['permissions'])}"
            )
        app["permissions"][permission] = True
        return self._done(f"Success. Permission '{permission}' granted to app '{app_name}'.")

    @tool
    def reboot_device(self) -> str:
        """Restart the phone."""
        lines = ["Restarting network services..."]
        if self.device["active_apn_settings"]["reset_at_reboot"]:
            lines.insert(0, "Resetting APN settings...")
            self.device["active_apn_settings"] = dict(APN)
        self.simulate_network_search()
        return self._done("\n".join(lines))

    @tool
    def make_payment(self) -> str:
        """Pay the bill of the payment request."""
        request = self.surroundings["payment_request"]
        if request is None:
            return "You do not have a payment request."
        request["paid"] = True
        return f"Payment of {request['amount_due']} USD has been made for bill {request['bill_id']}."

    # Parts -----------------------------------------------------------------------------------------------------

    def _toggle(self, setting: str, name: str, *, search: bool = True) -> str:
        self.switch(setting, not self.device[setting], search=search)
        return self._done(f"{name} is now {_on(self.device[setting])}.")

    def _done(self, text: str) -> str:
        return f"{text}\nStatus Bar: {self._bar()}"

    def _granted(self, app_name: str) -> list[str] | None:
        app = self.device["app_statuses"].get(app_name)
        return None if app is None else [name for name, granted in app["permissions"].items() if granted]

    def _bar(self) -> str:
        device = self.device
        connected = device["network_technology_connected"] != "none"
        parts = []
        if device["airplane_mode"]:
            parts.append("✈️ Airplane Mode")
        else:
            parts.append(BARS.get(device["network_signal_strength"], BARS["none"]))
            parts += [device["network_technology_connected"]] * connected
            if device["data_enabled"] and connected:
                parts.append("📱 Data Enabled")
                parts += ["🔽 Data Saver"] * device["data_saver_mode"]
            else:
                parts.append("📵 Data Disabled")
        if device["wifi_enabled"] and device["wifi_connected"]:
            parts.append(f"📡 Connected to {device['wifi_ssid']}" if device["wifi_ssid"] else "📡 Enabled")
        parts += ["🔒 VPN Connected"] * device["vpn_connected"]
        return " | ".join([*parts, f"🔋 {device['battery_level']}%"])


def _on(state: bool) -> str:
    return "ON" if state else "OFF"


def _yes(state: bool) -> str:
    return "Yes" if state else "No"
