"""Stable-Baselines3 VecEnvs over the learner seats of games, and buffers for several learners in a game."""
