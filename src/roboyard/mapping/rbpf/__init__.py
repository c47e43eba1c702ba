"""SLAM by a Rao-Blackwellized particle filter, as in gmapping."""
