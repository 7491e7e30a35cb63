"""Engines, browsers, pictures and remote environments for several tasks; third parties are imported lazily."""
