"""The parts of `make bench`: those that `part.py` lists have a `measure`, and run in a process of their own."""
