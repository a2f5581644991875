"""Proves each wall of this repository by trying it. Source: cli §2 `doctor`."""
