"""Free gait: where to set which foot, and when, over ground that no fixed gait crosses; planners of such plans, their
file, and a checker that shares no code with the planners."""
