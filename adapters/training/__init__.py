"""Training runs: self-play, imitation, what a run keeps, and its report."""
