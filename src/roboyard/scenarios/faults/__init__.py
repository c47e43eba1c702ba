"""Faults of a scenario: their schema, their schedule, and how they are injected."""
