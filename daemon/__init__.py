"""Notices, commits, keeps time, speaks: the imperative shell. Source: design §2."""
