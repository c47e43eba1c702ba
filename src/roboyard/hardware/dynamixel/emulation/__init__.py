"""Emulator of Dynamixel servos: answers protocol 1.0 byte by byte on a pseudo-terminal."""
