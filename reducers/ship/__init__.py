"""The ship report, a pure function of a run's facts. Source: protocol §5.8, §5.9."""
