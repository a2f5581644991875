"""The trace lint: every requirement is covered by a criterion, every engine is reached from the entry point. Source: protocol §5.3."""
