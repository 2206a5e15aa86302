"""What tests share: benchmarks, runs, the command line, and ways to look at results."""
