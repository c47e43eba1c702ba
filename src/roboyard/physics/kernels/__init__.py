"""Compiled parts of a physics step: contact solver, contact modifiers, servos, contact episodes, compliant bodies,
grasps."""
