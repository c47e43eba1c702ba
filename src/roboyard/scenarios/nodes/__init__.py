"""Nodes of scenarios: ground truth, people and helpers that move, the operator, faults, the clock's services."""
