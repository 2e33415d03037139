"""Many games stepped together as arrays, whatever plays them."""
