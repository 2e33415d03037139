"""The `snake-pz` command."""
