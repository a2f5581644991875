"""The spec lint: what is wrong with a feature's committed specs and its board, rule by rule. Source: protocol §5.2."""
