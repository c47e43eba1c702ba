"""Graph SLAM: scans are matched in submaps, loop closures connect the submaps, and a pose graph is optimized."""
