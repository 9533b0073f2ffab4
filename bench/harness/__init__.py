"""The benchmarks: which libraries, how they are run beside each other, and how results are told."""
