"""Bring-up of robots: what is installed, a robot's package and its nodes, and nodes derived from a bare description."""
