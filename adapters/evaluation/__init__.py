"""Who is how strong: games to the end, ratings, tournaments and their tables."""
