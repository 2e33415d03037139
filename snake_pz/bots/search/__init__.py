"""A player that searches: alpha-beta on the state of the game."""
