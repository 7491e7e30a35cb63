"""Embedded models and the model families whose pictures are supported."""
