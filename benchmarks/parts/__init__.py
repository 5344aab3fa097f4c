"""The parts of `make bench`: each has a function `measure`, and runs in a process of its own."""
