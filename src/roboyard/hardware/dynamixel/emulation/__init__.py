"""Emulated servos: answer protocol 1.0 byte by byte on a pseudo-terminal."""
