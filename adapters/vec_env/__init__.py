"""Games from the learner's seats: Stable-Baselines3 VecEnvs and the buffers that go with them."""
