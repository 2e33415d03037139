"""Evaluation: games played to the end, tournaments and their standings."""
