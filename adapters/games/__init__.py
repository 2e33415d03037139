"""Games stepped together as arrays: the `GameBatch` protocol and its backends."""
