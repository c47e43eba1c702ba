"""A robot, a world, a scenario and a node for Roboyard, found by their names once this package is installed."""
