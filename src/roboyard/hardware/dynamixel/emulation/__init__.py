"""Servos that are not there: they speak the protocol byte by byte on a pseudo-terminal."""
