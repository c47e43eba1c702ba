"""Roboyard: robots described, simulated, driven and judged in one package."""
