"""A window in which people play and watch."""
