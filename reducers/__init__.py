"""Facts to changes: pure, the clock is passed in. Source: design §2."""
