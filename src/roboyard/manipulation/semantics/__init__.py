"""Semantic description of a robot (SRDF): planning groups, grippers, named poses and allowed collisions.

`roboyard.manipulation` exports the classes, and the functions that load and guess a description.
"""
