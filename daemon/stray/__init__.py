"""Notices writes outside every live substrate, while an order is live. Source: ruling E7."""
