"""The parts of hooks/specs.py: one rule over committed specs a module. Source: rulings E3, E9."""
