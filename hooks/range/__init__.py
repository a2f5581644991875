"""Judges commits that are there already: a push, a range in CI, a branch about to move. Source: rulings E5, E11, targets 20, 21."""
