"""Mapping on the bus."""
