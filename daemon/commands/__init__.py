"""One verb, one file; each is imported only when called. Source: rulings J."""
