"""Pictures of a game: shapes, layout, windows and text."""
