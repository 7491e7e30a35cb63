"""Dialogues between an agent with tools and a user: tools, calls, protocol tokens and the audit of users."""
