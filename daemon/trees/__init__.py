"""Keeps and restores the trees of measured attempts on shadow refs. Source: protocol §6.5, rulings G1, G2, G9.

`kept.py` is the way in: keep, find_kept, restore, undo; `finishing.py` finishes what a death interrupted.
"""
