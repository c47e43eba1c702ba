"""The wall clock: for pacing, for time-outs towards other processes, and for measuring; it never enters a message."""

import time

perf_ns = time.perf_counter_ns
"""Monotonic wall time [ns]: for measuring how long calls take."""

wall_seconds = time.monotonic
"""Monotonic wall time [s]: for time-outs towards other processes."""
