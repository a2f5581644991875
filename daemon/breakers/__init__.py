"""The breakers in the daemon: what they look at, how a trip is recorded and told, and the page of GATE H. Source: design §5, protocol §7."""
