"""The compiler: descriptions of a world and its models become a MuJoCo model and the tables of its addresses."""
