"""The round-loop invariants of protocol §9 as findings: of an order that lands, of a result, and of a run as a whole."""
