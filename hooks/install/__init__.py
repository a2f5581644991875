"""Puts the git hooks into a repository, beside whatever stands there, and takes them out again. Source: design §6, targets 24."""
