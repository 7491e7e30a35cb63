"""Chromium behind synchronous calls: sessions, actions, observations, virtual time and the walls around pages."""
