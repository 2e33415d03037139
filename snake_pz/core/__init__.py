"""The rules of the game on arrays: state, turn, observations, rewards, and the engine that runs them."""
