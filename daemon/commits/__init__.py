"""Judges every new commit after the fact, with the policy of its time. Source: rulings E6, E16, design §4."""
