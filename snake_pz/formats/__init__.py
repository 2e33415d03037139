"""What other programs say of a game, read as `Rules` and a `Position`, and written from a running game."""
