"""What happens to a run from outside its robots, and what goes wrong with them, at their times."""
