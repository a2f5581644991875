"""Runs a scope's fixtures and judges the attempt. Source: protocol §6, rulings A4, G5, G7, G9, G10.

`attempt.py` is the way in: it measures (`fixtures.py`, `processes.py`), judges, keeps or restores the tree, and writes the evidence.
"""
