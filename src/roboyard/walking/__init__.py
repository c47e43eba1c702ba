"""Legs and what they do: kinematics of legs and bodies, movements, gaits."""
