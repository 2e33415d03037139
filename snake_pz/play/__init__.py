"""A window where people play and watch."""
