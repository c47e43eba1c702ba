"""Free gait: footsteps without a fixed order, planned over uneven ground.

`plan_steps` in `planning` runs the planners of `planners`; `plan_follower` executes a step plan, `plan_file` reads and
writes it, and `plan_checker` verifies it without sharing code with the planners.
"""
