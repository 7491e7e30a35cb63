"""What several tasks stand on: engines, sandboxes, browsers, users. Third parties are imported inside functions."""
