"""The guided run: a real daemon, real files, every claim checked. Source: cli §2 `demo`."""
