"""What git and agents call: may I? Fast to start. Source: design §4."""
