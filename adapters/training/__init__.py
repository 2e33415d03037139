"""Training: self-play, imitation, run folders and their report."""
