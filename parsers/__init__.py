"""Bytes to typed facts: no I/O, no clock. Source: design §2."""
