"""Environments for clients on the network: `lmgym serve`."""
