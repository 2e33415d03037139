"""Where agents play games that other programs run."""
