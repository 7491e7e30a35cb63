"""The server of environments for clients on the network: `lmgym serve`."""
